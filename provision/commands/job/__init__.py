"""`provision job`: write a job script on stdout, check one, or follow a job to its end.

`single`, `mirrored`, `multiworker`, `horovod` and a site's own plug-ins are users' jobs (`user`); `image` and `overlay`
prepare a container for them (`prepare`); `build` and `follow` are an administrator's; `lint` checks a script.
"""
