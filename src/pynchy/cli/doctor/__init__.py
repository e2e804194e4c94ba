"""What `pynchy doctor` looks at: each check yields findings of one line, each with one fix.

settings     the settings, and each group: who may answer, its launcher, how isolated it is
connections  the agent programs that are connected
programs     Claude Code as it is installed, and the programs that sources follow
command      all of it in order: first the machine, the data folder and the running host,
             at the end what each channel says of itself
"""
