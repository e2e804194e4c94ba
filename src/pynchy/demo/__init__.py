"""`pynchy demo`: the real host, a real MCP client, and a person, in one terminal.

story    the plot, every step of it checked        script   what is asked, and said
stage    the folder and the processes, and their end        voices   who speaks, on the screen
watch    what the host tells of a question         person   who answers: you, or `--auto`
agent    the scripted agent, live and resumed      mcp_client   how it talks to `pynchy mcp`
"""
