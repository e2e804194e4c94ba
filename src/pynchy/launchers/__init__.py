"""How a dead agent is brought back: launchers and the runners they start."""
