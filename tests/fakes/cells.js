// What xterm.js shows: reads lines {cols, rows, data: [base64]}, writes a line with cells, cursor and modes for each.
// The first argument is the folder of the package @xterm/headless.
const { Terminal } = require(process.argv[2]);
const lines = require("fs").readFileSync(0, "utf8").trim().split("\n");
(async () => {
  for (const line of lines) {
    const ask = JSON.parse(line);
    const t = new Terminal({ cols: ask.cols, rows: ask.rows, allowProposedApi: true, scrollback: 0 });
    for (const piece of ask.data) await new Promise((done) => t.write(Buffer.from(piece, "base64"), done));
    const b = t.buffer.active, cells = [];
    for (let y = 0; y < ask.rows; y++) {
      const row = b.getLine(b.baseY + y), out = [];
      for (let x = 0; x < ask.cols; x++) {
        const c = row.getCell(x);
        const chars = c.getChars();
        const attrs = [c.getFgColorMode(), c.getFgColor(), c.getBgColorMode(), c.getBgColor(), c.isBold(), c.isItalic(), c.isDim(), c.isUnderline(), c.isBlink(), c.isInverse(), c.isInvisible(), c.isStrikethrough()].map(Number);
        out.push([chars === "" && c.getWidth() === 1 ? " " : chars, c.getWidth(), attrs]);
      }
      cells.push(out);
    }
    const m = t.modes;
    console.log(JSON.stringify({ cells, cursor: [b.cursorX, b.cursorY], type: b.type, modes: m, hidden: !!t._core.coreService.isCursorHidden }));
  }
})();
