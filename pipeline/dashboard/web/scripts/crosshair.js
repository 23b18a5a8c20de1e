// Draws one line at the pointer's time through all charts of a group of charts that share an axis of time, with the
// time at its head. Each chart is a drawing of its own, which knows nothing of the others.
(() => {
  const GROUP = '[class*="st-key-crosshair"]';
  const PLOT = "[data-testid=stVegaLiteChart] svg g.root > g > path.background";
  if (window.wirelakeCrosshair) return; // one line, however often the page is drawn
  window.wirelakeCrosshair = true;

  const line = document.createElement("div");
  const label = document.createElement("div");
  line.setAttribute("aria-hidden", "true"); // the tooltip of a mark has its time in words
  line.className = "wirelake-crosshair";
  line.style.cssText = "position:fixed;width:0;border-left:1px dashed currentColor;pointer-events:none;z-index:999970;display:none";
  label.style.cssText =
    "position:absolute;bottom:100%;left:0;transform:translateX(-50%);padding:0 0.4em;font-size:12px;white-space:nowrap;" +
    "background:Canvas;border:1px solid currentColor;border-radius:4px";
  line.append(label);
  document.body.append(line);

  function hide() {
    line.style.display = "none";
  }

  function move(event) {
    const group = event.target.closest?.(GROUP);
    const about = group?.querySelector("[data-crosshair-from]")?.dataset;
    if (!about) return hide();
    const plots = [...group.querySelectorAll(PLOT)].map((plot) => plot.getBoundingClientRect());
    const inside = plots.filter((plot) => plot.left <= event.clientX && event.clientX <= plot.right);
    if (!inside.length) return hide();
    const [from, to] = [Number(about.crosshairFrom), Number(about.crosshairTo)];
    const share = (event.clientX - inside[0].left) / inside[0].width;
    const time = new Date(from + share * (to - from));
    const top = Math.min(...inside.map((plot) => plot.top));
    line.style.left = `${event.clientX}px`;
    line.style.top = `${top}px`;
    line.style.height = `${Math.max(...inside.map((plot) => plot.bottom)) - top}px`;
    line.style.color = getComputedStyle(group).color;
    label.textContent = new Intl.DateTimeFormat("sv", {
      timeZone: about.crosshairZone, hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3,
    }).format(time).replace(",", ".");
    line.style.display = "block";
  }

  document.addEventListener("pointermove", move, { passive: true });
  document.addEventListener("scroll", hide, { passive: true, capture: true });
})();
