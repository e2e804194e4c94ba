"""`pynchy demo`: the real host, a real MCP client, and a person, in one terminal.

story      the plot, every step of it checked against the host's own events
script     what is asked, and said              person   who answers: you, or `--auto`
processes  the folder and the processes, and their end
agent      the scripted agent, live and resumed, and how it talks to `pynchy mcp`
console    who speaks, on the screen
"""
