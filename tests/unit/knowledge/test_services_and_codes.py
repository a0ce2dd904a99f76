"""Services of a cluster that do not start, and programs that print their errors in a form of their own."""

from __future__ import annotations

from parts.loops import for_each
from provision.knowledge.failures.explain import explain
from provision.machine.tables import known_failures

REFUSED = "redis-cli -p 6380 ping\nCould not connect to Redis at 127.0.0.1:6380: Connection refused\nrc=1\n"
NO_SLURM = "slurm_load_partitions: Unable to contact slurm controller (connect failure)\n"
PERSIST = (
    "error: slurm_persist_conn_open_without_init: failed to open persistent connection to n1:6819: Connection refused\n"
)
CALL = (
    'ts=2024-01-02T03:04:05.9Z caller=main.go:469 level=error msg="Error loading config" err="yaml: line 6: no key"\n'
)
LOADING = 'ts=2024-01-02T03:04:05.9Z caller=head.go:614 level=info msg="Replaying WAL, this may take a while"\n'

# A log, and the entry that explains it.
KNOWN = {
    "[2024-01-02T03:04:05.789] error: mysql_real_connect failed: 1045 Access denied for user 'slurm'@'n1' (using password: YES)\n"
    f"sacctmgr: {PERSIST}": "slurm-database-refused",
    f"[2024-01-02T03:04:05.610] {PERSIST}[2024-01-02T03:04:05.615] fatal: You are running with a database but have no TRES\n"
    + NO_SLURM: "slurmdbd-unreachable",
    f"[2024-01-02T03:04:05.736] fatal: CLUSTER NAME MISMATCH.\nslurmctld has been started with another name\n{NO_SLURM}": (
        "slurm-cluster-name"
    ),
    "sinfo: error: get_addr_info: getaddrinfo() failed: Name or service not known: No error, attempt number 5\n"
    'sinfo: error: slurm_set_addr: Unable to resolve "n1"\nsinfo: error: Unable to establish control machine address\n': (
        "slurm-address-unresolved"
    ),
    "/tmp/sc: line 124: Bad configuration option: GSSAPIEnabled\n/tmp/sc: terminating, 1 bad configuration options\n": (
        "ssh-option-unknown"
    ),
    "mount.nfs: rpc.statd is not running but is required for remote locking.\nrc=32\n"
    "ls: cannot access '/mnt/home/ada/project': No such file or directory\n": "nfs-mount-refused",
    "clnt_create: RPC: Port mapper failure - Timed out\nrc=1\n": "rpc-service-unreachable",
    "nslcd: [8b4567] <passwd> failed to bind to LDAP server ldap://n1/: Can't contact LDAP server: "
    "Transport endpoint is not connected\nnslcd: writing oom score adjustment of -1000 failed: Permission denied\n": (
        "ldap-unreachable"
    ),
    "kinit: Cannot contact any KDC for realm 'CLUSTER.LOCAL' while getting initial credentials\n"
    "ssh: Could not resolve hostname login01: Temporary failure in name resolution\n": "kerberos-kdc-unreachable",
    'ERROR: failed to create logfile "/var/log/glusterfs/cli.log" (Permission denied)\n'
    "Connection failed. Please check if gluster daemon is operational.\n": "gluster-service-down",
    "2024-01-02 03:04:05,747 INFO spawnerr: can't find command '/opt/hub/bin/hub'\n"
    "2024-01-02 03:04:06,759 INFO gave up: hub entered FATAL state, too many start retries too quickly\n": (
        "supervisor-program-missing"
    ),
    "2024-01-02 03:04:06,759 INFO gave up: hub entered FATAL state, too many start retries too quickly\n": "supervisor-gave-up",
    'ts=2024-01-02T03:04:05.4Z caller=main.go:802 level=error msg="Unable to start web listener" err="listen tcp 0.0.0.0:9090: '
    'bind: address already in use"\nprometheus.service: Main process exited, code=exited, status=1/FAILURE\n': "port-in-use",
    "2024-01-02 03:04:05.103725 N | etcdmain: failed to detect default host (could not find default route)\n"
    "2024-01-02 03:04:05.104230 C | etcdmain: listen tcp 127.0.0.1:2380: bind: address already in use\n"
    "job.sh: line 1: etcdctl: command not found\n": "port-in-use",
    "curl: (7) Failed to connect to localhost port 8080 after 0 ms: Couldn't connect to server\n": "connection-refused",
    "Could not remove /run/chrony/chronyd.pid : Permission denied\n": "file-not-removed",
    "ls: cannot access '/var/tmp/u.ch': No such file or directory\n"
    "ch-run[46]: error: can't stat: /var/tmp/tf2.15: No such file or directory (ch_core.c:255 2)\n": "charliecloud-image-missing",
    "fi_getinfo: -61\nfi_info rc=61\n": "libfabric-no-provider",
    "[h264_nvenc @ 0x55c7640681c0] Cannot load libcuda.so.1\nConversion failed!\n": "ffmpeg-nvidia-driver",
    "petsc4py.PETSc.Error: error code 86\n[0] PCSetType() at ./src/ksp/pc/interface/pcset.c:67\n"
    "[0] Unable to find requested PC type hypre_boomer\n": "petsc-type-unknown",
    "    4 : solve P(u,v)=int2d(ff* The Identifier ff does not exist\n\n Error line number 4, in file p.edp, before  token *\n": (
        "freefem-identifier"
    ),
    "          UNRECOGNIZED KEY-WORDS: (OPTIMISE)\n *\n *  Errors detected in keywords.  Job stopped here\n"
    " * JOB ENDED NORMALLY      *\n\n == MOPAC DONE ==\n": "mopac-keyword",
    "RAxML output files with the run ID <r1> already exist \nin directory /scratch/d08/ ...... exiting\n": "raxml-output-exists",
    'kraken2: database ("/scratch/k2db") does not contain necessary file taxo.k2d\nrc=2\n'
    "Opening the database... \nError opening file nr: No such file or directory\n": "kraken-database-incomplete",
    '"p.gp" line 5: warning: Cannot find or open file "energy_run7.dat"\n"p.gp" line 5: No data in plot\n\n': "gnuplot-no-data",
    "incorrect syntax: Missing )\ntsimp((x^2-1)/(x-1);\n                  ^\n": "maxima-syntax",
    "CPU clock:\t2.60 GHz\nCannot get access to MSRs. Please check permissions to the MSRs\nrc=1\n": "likwid-no-access",
    "sort: cannot read: s4.csv: No such file or directory\nparallel: This job failed:\n": "file-not-found",
}
# A log, and words of the cause: the tool quotes the program.
QUOTED = {
    f"slurmdbd: fatal: slurmdbd.conf file should be 600 is 644 accessible for others\nsacct: {PERSIST}": "should be 600 is 644",
    "Unable to load host key: /etc/ssh/k\nsshd: no hostkeys available -- exiting.\n"
    "ssh: connect to host localhost port 2222: Connection refused\n": "`sshd` reports an error: no hostkeys available",
    "[sssd] [confdb_init_db] (0x0020): Cannot convert INI to LDIF [143]: [File check failed]\n"
    "[sssd] [confdb_setup] (0x0010): ConfDB initialization has failed [143]: File check failed\n+ echo rc=4\nrc=4\n": (
        "ConfDB initialization has failed"
    ),
    "6b04bfd9.020d25a1 0x7f79873dc200 TLS: could not use CA certificate file `/etc/ssl/ca.pem': Error while reading file. (-64)\n"
    "6b04bfd9.021036c7 0x7f79873dc200 slapd stopped.\nldap_sasl_bind: Can't contact LDAP server (-1)\n": "/etc/ssl/ca.pem",
    "2024-01-02T03:04:05Z Fatal error : adjtimex(0x8001) failed : Operation not permitted\n506 Cannot talk to daemon\n"
    "2024-01-02T03:04:17Z Could not remove /run/chrony/chronyd.pid : Permission denied\n": "adjtimex(0x8001) failed",
    f"{CALL}+ echo rc=2\nrc=2\n": "yaml: line 6: no key",
    'time="2024-01-02T03:04:05Z" level=fatal msg="no route for the flux"\nrc=1\n': "no route for the flux",
    "*** FATAL CONFIG FILE ERROR (Redis 7.0.15) ***\nReading the configuration file, at line 3\n>>> 'maxmemory-polcy x'\n"
    f"Bad directive or wrong number of arguments\n{REFUSED}": "maxmemory-polcy",
    '2024/01/02 03:04:05 [emerg] 37#37: host not found in upstream "hub:8000" in /tmp/n.conf:2\n'
    "curl: (7) Failed to connect to localhost port 8080 after 0 ms: Couldn't connect to server\n": "`nginx` reports an error",
    "[NOTICE]   (36) : haproxy version is 2\n[ALERT]    (36) : config : parsing [/tmp/h.cfg:10] : unknown keyword 'balanced'\n"
    "[ALERT]    (36) : config : Fatal errors found in configuration.\n": "unknown keyword 'balanced'",
    "kinit: Password incorrect while getting initial credentials\nrc=1\n": "`kinit` reports an error: Password incorrect",
    'rank=1 L50: Traceback (most recent call last):\nrank=1 L51:   File "/code/a.py", line 4, in f\nrank=1 L52:     g()\n'
    'rank=1 L53: FileNotFoundError: Could not find required PAW dataset file "H.LDA".\n'
    "MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD\n": (
        "a program reports an error: FileNotFoundError: Could not find"
    ),
    "ReadAlignChunk.cpp:204:processChunks EXITING because of FATAL ERROR in input reads: wrong read ID line format\n"
    "SOLUTION: verify and correct the input read files\n": "`STAR` reports an error: wrong read ID line format",
    "Exception : [Error: The index version file idx_v2/versionInfo.json doesn't seem to exist.]\nsalmon quant was invoked\n": (
        "idx_v2/versionInfo.json"
    ),
    "      Error while reading character position 21 (charCode 0)\n      Deleting previously defined taxa\n"
    "   Will exit with signal 1 (error) because quitonerror is set to yes\nmb: 1\n": ("reading character position 21"),
    "== Warning ==  No assembly mode was specified!\n\n== Error ==  file not found: /scratch/R2.fq (right reads)\n\nrc 255\n": (
        "`SPAdes` reports an error: file not found: /scratch/R2.fq"
    ),
    "PDBQT parsing error: Unknown or inappropriate tag found in flex residue or ligand.\n > COMPND    UNNAMED\n": (
        "inappropriate tag found"
    ),
    "ERROR - [./src/perfmon.c:perfmon_init_maps:1262] Unsupported AMD Zen Processor\nrc=1\nFailed to parse cpulist N:0-7\n": (
        "Unsupported AMD Zen Processor"
    ),
    " *ERROR reading *SOLID SECTION: nonexistent material\n   \n *ERROR reading *SOLID SECTION. Card image:\n"
    "        *SOLIDSECTION,ELSET=E\n\n *ERROR in calinput: no material was assigned\n": "nonexistent material",
    "ECCODES ERROR   :  Input does not contain any field. Exiting!\ncdo    copy: Open failed on >a.grib<\n": (
        "does not contain any field"
    ),
    "convert: width or height exceeds limit `white' @ error/cache.c/OpenPixelCache/3928.\n+ convert p.png p.pdf\n+ echo a\na\n"
    "b\nc\nd\ne\n": "width or height exceeds limit",
    "Error initializing output stream 0:0 -- Error while opening encoder for output stream #0:0\nConversion failed!\n": (
        "`FFmpeg` reports an error: Error while opening encoder"
    ),
    "Alignment input open failed.\n   can't guess alignment input format: empty file/no data\n   while reading file p.aln\n": (
        "empty file/no data while reading file p.aln"
    ),
    "  ***   at top-level: print(1/0)\n  *** _/_: impossible inverse in gdiv: 0.\ngp 0\n": "impossible inverse in gdiv",
    " Error line number 4, in file p.edp, before  token *\n\n  current line = 4\n": "4, in file p.edp",
    "Error: Error reading input stream at line 4: Invalid character (1) in sequence\ndiamond rc 1\n": (
        "a program reports an error: Error reading input stream"
    ),
    "job.sh: line 1: nvidia-smi: command not found\nTraceback (most recent call last):\n"
    '  File "/work/md.py", line 5, in <module>\n    p = f("CUDA")\nopenmm.OpenMMException: There is no registered Platform\n': (
        "There is no registered Platform"
    ),
}
# Healthy lines that look alike.
HEALTHY = (
    (
        "[2024-01-02T03:04:05.451] error: Database settings not recommended values: innodb_buffer_pool_size\n"
        "[2024-01-02T03:04:05.532] slurmdbd version 22.05.8 started\n"
        "[2024-01-02T03:04:05.755] error: No fed_mgr state file (/var/spool/slurmctld/fed_mgr_state) to recover\n"
    ),
    (
        "Server listening on 0.0.0.0 port 2222.\nkex_exchange_identification: Connection closed by remote host\n"
        "root@127.0.0.1: Permission denied (publickey,password).\n"
        "Accepted publickey for ada from 127.0.0.1 port 46950 ssh2: ED25519 SHA256:1JU8Yyd2\nReceived signal 15; terminating.\n"
    ),
    (
        'ts=2024-01-02T03:04:05.9Z caller=d.go:264 level=error msg="Failed to open, disabling udev device properties"\n'
        'ts=2024-01-02T03:04:05.9Z caller=collector.go:169 level=error msg="collector failed" name=systemd err="could not get '
        'dbus connection: dial unix /run/systemd/private: connect: no such file or directory"\n'
        'ts=2024-01-02T03:04:05.9Z caller=main.go:823 level=warn msg="Received SIGTERM, exiting gracefully..."\n'
        'ts=2024-01-02T03:04:05.9Z caller=main.go:1130 level=info msg="See you next time!"\n'
    ),
    f"{CALL}{LOADING * 6}",
    'time="2024-01-02T03:04:05Z" level=warning msg="failed to load plugin io.containerd.snapshotter.v1.zfs" error="no zfs"\n',
    "2024-01-02 03:04:05.103725 N | etcdmain: failed to detect default host (could not find default route)\n",
    "[NOTICE]   (36) : haproxy version is 2.6.12\n[NOTICE]   (36) : Loading success.\n",
    "mount.nfs: timeout set for Mon Nov 23 22:34:23 2026\nmount.nfs: trying text-based options 'vers=4.2,addr=10.0.0.1'\n",
    "2024-01-02 03:04:05,751 INFO success: cron entered RUNNING state, process has stayed up for > than 1 seconds\n",
    "nslcd: writing oom score adjustment of -1000 failed: Permission denied\nnslcd: accepting connections\n",
    "== Warning ==  No assembly mode was specified! If you intend to assemble, use '--isolate' option.\n",
    "convert: profile matches `icc' @ warning/png.c/MagickPNGWarningHandler/1748.\n",
    "[mp3 @ 0x55c7640681c0] Estimating duration from bitrate, this may be inaccurate\nvideo:3kB audio:0kB muxing overhead: 1%\n",
)


@for_each("log", KNOWN)
def test_a_service_or_code_that_stops_is_explained(log: str) -> None:
    known = explain([log.encode()], known_failures()).known
    assert known is not None and known.failure.id == KNOWN[log]


@for_each("log", QUOTED)
def test_a_service_or_code_is_quoted_before_what_follows_from_it(log: str) -> None:
    known = explain([log.encode()], known_failures()).known
    assert known is not None and QUOTED[log] in known.cause


@for_each("log", HEALTHY)
def test_a_service_that_works_is_not_accused(log: str) -> None:
    explanation = explain([log.encode()], known_failures())
    assert explanation.verdict == "healthy", explanation.findings


def test_a_login_that_is_refused_counts_if_none_was_accepted_after_it() -> None:
    accepted = "Accepted publickey for ada from 127.0.0.1 port 46950 ssh2: ED25519 SHA256:1JU8Yyd2\n"
    log = f"{accepted}ada@n2: Permission denied (publickey,password).\n"
    known = explain([log.encode()], known_failures()).known
    assert known is not None and known.failure.id == "ssh-login"


def test_an_accepted_login_excuses_no_other_failure() -> None:
    log = "slurmd: fatal: the flux is inverted\nAccepted publickey for ada from 127.0.0.1 port 46950 ssh2: ED25519 SHA256:1\n"
    known = explain([log.encode()], known_failures()).known
    assert known is not None and "the flux is inverted" in known.cause
