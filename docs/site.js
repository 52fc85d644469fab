// What the search of MkDocs lacks: the index is made in the browser, which takes a while after each page was
// opened, and what was typed before is not looked up.
document.addEventListener("DOMContentLoaded", () => {
  const input = document.getElementById("mkdocs-search-query");
  const results = document.getElementById("mkdocs-search-results");
  let ready = false;

  input.addEventListener("keyup", () => {
    if (!ready && input.value) {
      results.textContent = "The index is being made.";
    }
  });
  searchWorker.addEventListener("message", (event) => {
    if (event.data.allowSearch) {
      ready = true;
      if (input.value) {
        doSearch();
      }
    } else if (event.data.results) {
      ready = true;
    }
  });
});
