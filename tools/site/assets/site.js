// The search: all words have to be somewhere in a page; titles and headings count more than text.
(function () {
  "use strict";
  var root = document.body.dataset.root, input = document.getElementById("search"), results = document.getElementById("results");
  function score(page, words) {
    var total = 0;
    for (var i = 0; i < words.length; i++) {
      var w = words[i], s = 0;
      if (page.t.toLowerCase().indexOf(w) >= 0) s += 20;
      (page.h || []).forEach(function (h) { if (h.t.toLowerCase().indexOf(w) >= 0) s += 5; });
      if (page.x.toLowerCase().indexOf(w) >= 0) s += 1;
      if (s === 0) return 0;
      total += s;
    }
    return total;
  }
  function line(url, text) {
    var li = document.createElement("li"), a = document.createElement("a");
    a.href = root + url;
    a.textContent = text;
    li.appendChild(a);
    results.appendChild(li);
  }
  input.addEventListener("input", function () {
    var words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    results.textContent = "";
    if (!words.length) return;
    window.PAGES.map(function (p) { return { p: p, s: score(p, words) }; })
      .filter(function (r) { return r.s > 0; })
      .sort(function (a, b) { return b.s - a.s; })
      .slice(0, 12)
      .forEach(function (r) {
        line(r.p.u, r.p.t);
        (r.p.h || []).filter(function (h) { return words.every(function (w) { return h.t.toLowerCase().indexOf(w) >= 0; }); })
          .slice(0, 3)
          .forEach(function (h) { line(r.p.u + "#" + h.id, "– " + h.t); });
      });
    if (!results.children.length) {
      var none = document.createElement("li");
      none.textContent = "nothing found";
      results.appendChild(none);
    }
  });
  var asked = new URLSearchParams(location.search).get("q"); // index.html?q=words
  if (asked) {
    input.value = asked;
    input.dispatchEvent(new Event("input"));
  }
})();
