// What is said in more than one place.

export const SIGNED_OUT =
  "You are signed out. On the machine where pynchy runs, pynchy inbox --open signs you in again.";
