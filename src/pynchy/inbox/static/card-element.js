// A card as an element of the page: makes it from the host's HTML, reads and fills its fields, and
// keeps its focus.

export function cardFromHtml(html) {
  const template = document.createElement("template");
  template.innerHTML = html.trim();
  return template.content.firstElementChild;
}

export function growTextFields(card) {
  if (CSS.supports("field-sizing", "content")) return;
  for (const field of card.querySelectorAll("textarea")) {
    field.style.height = "auto";
    field.style.height = `${field.scrollHeight + 2}px`;
  }
}

// Everything that is written in the card's fields, a reason to decline and an edited call among it.
export function writtenText(card) {
  const fields = [...card.querySelectorAll("[data-text], [data-reason]")];
  const texts = fields.map((field) => field.value).filter((text) => text.trim());
  return [...new Set([...texts, card.reason, card.editedText].filter(Boolean))].join("\n\n");
}

// Each question's text and marked options, by its number.
export function readFields(card) {
  return [...card.querySelectorAll(".question")].map((question) => ({
    // Where only the options count there is no field.
    text: question.querySelector("[data-text]")?.value ?? "",
    options: markedOptions(question),
  }));
}

// True if the part answers nothing: what was answered before may be left empty, and where a choice
// is needed, words alone are no answer.
export function isUnanswered(question, part) {
  if (part.options.length) return false;
  if (part.text.trim()) return "choose" in question.dataset;
  return !("answered" in question.dataset);
}

function markedOptions(question) {
  const chosen = question.querySelectorAll("input:checked, .option[aria-pressed=true]");
  return [...chosen].map((option) => Number(option.dataset.option));
}

export function fillFields(card, parts) {
  card.querySelectorAll(".question").forEach((question, index) => {
    const part = parts[index];
    if (!part) return;
    const field = question.querySelector("[data-text]");
    if (field) fillText(field, part.text);
    for (const option of question.querySelectorAll("[data-option]")) {
      const chosen = part.options.includes(Number(option.dataset.option));
      if (option.matches("input")) option.checked = chosen;
      else option.setAttribute("aria-pressed", String(chosen));
    }
  });
}

// What somebody has begun to write is not folded away.
export function fillText(field, text) {
  field.value = text;
  if (text) openOwnWords(field);
}

export function openOwnWords(field) {
  const box = field.closest("details");
  if (box) box.open = true;
}

// The first question of the card of which a part is still folded, if any.
export function foldedQuestion(card) {
  return card.querySelector(".question[data-folded]");
}

// The numbers of the long questions that were unfolded.
export function unfoldedQuestions(card) {
  const opened = [...card.querySelectorAll(".question:not([data-folded]) [data-do=unfold]")];
  return opened.map((button) => button.closest(".question").dataset.number);
}

// Show all of a long question. From then on it can be answered.
export function unfoldQuestion(card, number) {
  const question = card.querySelector(`.question[data-number="${number}"]`);
  if (!question) return;
  delete question.dataset.folded;
  for (const control of question.querySelectorAll("[inert]")) control.inert = false;
  question.querySelector("[data-do=unfold]")?.setAttribute("aria-expanded", "true");
}

export function saveFocus(card) {
  const active = document.activeElement;
  if (!card.contains(active)) return null;
  const question = active.closest(".question")?.dataset.number;
  const within = question ? `.question[data-number="${question}"] ` : "";
  const what = active.matches("[data-text]") ? "[data-text]"
    : active.dataset.option ? `[data-option="${active.dataset.option}"]`
    : active.dataset.do ? `[data-do="${active.dataset.do}"]` : null;
  return { selector: what && within + what, range: [active.selectionStart, active.selectionEnd] };
}

export function restoreFocus(card, path) {
  if (!path) return;
  const target = (path.selector && card.querySelector(path.selector)) || card;
  openOwnWords(target);
  target.focus({ preventScroll: true });
  if (target.matches("textarea")) target.setSelectionRange(...path.range);
}
