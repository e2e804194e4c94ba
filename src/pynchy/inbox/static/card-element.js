// The fields of a card: as tall as what is in them, and the same after the card was made anew.

export function grow(card) {
  if (CSS.supports("field-sizing", "content")) return;
  for (const field of card.querySelectorAll("textarea")) {
    field.style.height = "auto";
    field.style.height = `${field.scrollHeight + 2}px`;
  }
}

export function fill(card, parts) {
  card.querySelectorAll(".question").forEach((question, index) => {
    const part = parts[index];
    if (!part) return;
    const field = question.querySelector("[data-text]");
    if (field) field.value = part.text;
    for (const option of question.querySelectorAll("[data-option]")) {
      const chosen = part.options.includes(Number(option.dataset.option));
      if (option.matches("input")) option.checked = chosen;
      else option.setAttribute("aria-pressed", String(chosen));
    }
  });
}

export function focusPath(card) {
  const active = document.activeElement;
  if (!card.contains(active)) return null;
  const question = active.closest(".question")?.dataset.number;
  const within = question ? `.question[data-number="${question}"] ` : "";
  const what = active.matches("[data-text]") ? "[data-text]"
    : active.dataset.option ? `[data-option="${active.dataset.option}"]`
    : active.dataset.do ? `[data-do="${active.dataset.do}"]` : null;
  return { selector: what && within + what, range: [active.selectionStart, active.selectionEnd] };
}

export function followPath(card, path) {
  if (!path) return;
  const target = (path.selector && card.querySelector(path.selector)) || card;
  target.focus({ preventScroll: true });
  if (target.matches("textarea")) target.setSelectionRange(...path.range);
}
