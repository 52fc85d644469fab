// The texts of a page that are too pale to read: less contrast to their ground than WCAG 2 (AA) asks for.
(() => {
  const light = (colour) => {
    const [r, g, b] = colour.map((value) => {
      const part = value / 255;
      return part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const parsed = (text) => {
    const parts = text.match(/[\d.]+/g).map(Number);
    return parts.length < 4 ? [...parts, 1] : parts;
  };
  const over = (colour, ground) => ground.map((value, i) => colour[i] * colour[3] + value * (1 - colour[3]));
  const groundOf = (element) => {
    const colours = [];
    for (; element; element = element.parentElement) {
      colours.unshift(parsed(getComputedStyle(element).backgroundColor));
    }
    return colours.reduce((ground, colour) => over(colour, ground), [255, 255, 255]);
  };
  const pale = {};
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const text = texts.currentNode.data.trim();
    const element = texts.currentNode.parentElement;
    if (!text || ["SCRIPT", "STYLE"].includes(element.tagName) || !element.checkVisibility()) continue;
    const style = getComputedStyle(element);
    const ground = groundOf(element);
    const [dark, bright] = [light(over(parsed(style.color), ground)), light(ground)].sort((a, b) => a - b);
    const contrast = (bright + 0.05) / (dark + 0.05);
    const isLarge = parseFloat(style.fontSize) >= 24;
    if (contrast < (isLarge ? 3 : 4.5)) pale[`${element.tagName}.${element.className}`] = text.slice(0, 40);
  }
  return pale;
})();
