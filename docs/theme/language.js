// A link to the same page in the other language, in the menu bar. `cargo xtask docs` fills in the pages that have both.
(function () {
  const both = new Set([/* pages */]);
  const chinese = document.documentElement.lang === "zh-CN";
  const book = new URL(typeof path_to_root === "string" ? path_to_root : "./", document.location.href);
  let page = document.location.href.split(/[?#]/)[0].slice(book.href.length) || "index.html";
  if (!both.has(page)) page = "index.html";
  const link = document.createElement("a");
  link.href = new URL((chinese ? "../" : "zh-CN/") + page, book).href;
  link.textContent = chinese ? "English" : "中文";
  link.lang = chinese ? "en" : "zh-CN";
  link.className = "language-link";
  const buttons = document.querySelector("#mdbook-menu-bar .right-buttons, #menu-bar .right-buttons");
  if (buttons) buttons.prepend(link);
})();
