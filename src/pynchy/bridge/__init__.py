"""The story of one question, top to bottom.

    ask ──► record ──► show ──► (a person) ──► answer ──► deliver live ──► close
                                    │                        └─► deliver late ─► close
                                    └──► expire, default, withdraw

`lifecycle` is the pure state machine; `ledger` makes its steps durable and publishes them.
"""
