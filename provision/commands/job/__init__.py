"""`provision job`: write a job script on stdout, check one, or follow a job to its end.

`single`, `mirrored`, `multiworker`, `horovod` and a site's own plug-ins are users' jobs (`user`); `image` and `overlay`
prepare a container for them, and `build` an environment (`prepare`); `follow` is for all jobs; `lint` checks a script.
"""
