// Hides from screen readers the area that is dragged over a picture: Vega-Lite draws it as a graphic without a name, and
// cannot be given one. What it does, the times in the sidebar do as well; the picture around it has a name.
(() => {
  const BRUSH = 'g[class*="_brush"]:not([aria-hidden])';
  if (window.wirelakeHidesBrushes) return; // one observer, however often the page is drawn
  window.wirelakeHidesBrushes = true;

  function hide() {
    for (const brush of document.querySelectorAll(BRUSH)) brush.setAttribute("aria-hidden", "true");
  }

  new MutationObserver(hide).observe(document.body, { childList: true, subtree: true });
  hide();
})();
