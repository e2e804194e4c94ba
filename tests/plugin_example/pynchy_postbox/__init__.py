"""A channel that is a folder: cards are text files in it, and so are people's replies.

    CHAT/cards/GROUP.REQUEST.txt    a card; when it is over it says how
    CHAT/people/USER/NAME.txt       a reply: "Re: GROUP.REQUEST.txt", and then the answer
    CHAT/people/USER/told/NAME.txt  what that person alone was told about it
    CHAT/people/USER/done/NAME.txt  the reply once it was judged

Whoever may write into the folder of a user is that user: the folder's permissions see to that.

plugin    what pynchy is told of it
channel   the channel
command   `pynchy postbox`
"""
