"""The story of one question, top to bottom.

    ask ──► record ──► show ──► (a person) ──► answer ──► deliver live ──► close
                                    │                        └─► deliver late ─► close
                                    └──► expire, default, withdraw

`lifecycle` is the pure state machine; `desk` is where its steps are made durable and told.
"""
