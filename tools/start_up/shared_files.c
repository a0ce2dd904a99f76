/* A shared file system as one emulated node sees it: a FUSE mount of a folder, read only, with the delays of a metadata server.
 *
 *   shared_files CLOCK LATENCY_US RATE KEEP_S FOLDER MOUNT
 *
 * Each look-up of a name waits for its turn at a server that answers RATE look-ups a second, and LATENCY_US more. All mounts
 * with the same file CLOCK share that server. Folders are kept by the client as long as they are mounted; the answer for any
 * other name, also that there is none, is kept for KEEP_S seconds. To open and to read cost nothing: the bytes are no part of it.
 * The delays are sleeps, so a busy CPU changes little. SIGTERM ends it.
 */
#define FUSE_USE_VERSION 312
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static _Atomic int64_t *free_at; /* when the server is free, ns; shared by all mounts */
static int64_t latency_ns, service_ns;
static double keep_s;
static const char *folder;

struct node {
  char *path; /* below the folder; "" is the folder itself */
};
static struct node root = {""};

static struct node *node_of(fuse_ino_t ino) { return ino == FUSE_ROOT_ID ? &root : (struct node *)(uintptr_t)ino; }

static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* Waits as long as the server takes: for its turn, for the service, and for the way there and back. */
static void ask_server(void) {
  static _Thread_local int prepared;
  if (!prepared) prepared = !prctl(PR_SET_TIMERSLACK, 1);
  int64_t begins = atomic_load(free_at), now = now_ns(), ends;
  do ends = (begins > now ? begins : now) + service_ns;
  while (!atomic_compare_exchange_weak(free_at, &begins, ends));
  ends += latency_ns;
  struct timespec until = {ends / 1000000000LL, ends % 1000000000LL};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) continue;
}

static void place(char *out, size_t size, const struct node *node, const char *name) {
  snprintf(out, size, "%s%s%s%s", folder, node->path, *name ? "/" : "", name);
}

static void lookup(fuse_req_t req, fuse_ino_t parent, const char *name) {
  char path[4096];
  struct fuse_entry_param entry = {.entry_timeout = keep_s, .attr_timeout = 86400};
  ask_server();
  place(path, sizeof path, node_of(parent), name);
  if (lstat(path, &entry.attr)) { /* inode 0: there is none, for as long as the time-out says */
    if (keep_s > 0) fuse_reply_entry(req, &entry);
    else fuse_reply_err(req, errno);
    return;
  }
  if (S_ISDIR(entry.attr.st_mode)) entry.entry_timeout = 86400;
  struct node *node = malloc(sizeof *node);
  node->path = strdup(path + strlen(folder));
  entry.ino = (fuse_ino_t)(uintptr_t)node;
  fuse_reply_entry(req, &entry);
}

static void forget(fuse_req_t req, fuse_ino_t ino, uint64_t count) {
  (void)ino, (void)count; /* the program ends with the measurement */
  fuse_reply_none(req);
}

static void get_attributes(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *info) {
  char path[4096];
  struct stat attributes;
  (void)info;
  place(path, sizeof path, node_of(ino), "");
  if (lstat(path, &attributes)) fuse_reply_err(req, errno);
  else fuse_reply_attr(req, &attributes, 86400);
}

static void read_link(fuse_req_t req, fuse_ino_t ino) {
  char path[4096], target[4096];
  place(path, sizeof path, node_of(ino), "");
  ssize_t length = readlink(path, target, sizeof target - 1);
  if (length < 0) {
    fuse_reply_err(req, errno);
    return;
  }
  target[length] = 0;
  fuse_reply_readlink(req, target);
}

static void open_file(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *info) {
  char path[4096];
  place(path, sizeof path, node_of(ino), "");
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    fuse_reply_err(req, errno);
    return;
  }
  info->fh = file;
  info->keep_cache = 1;
  fuse_reply_open(req, info);
}

static void read_file(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *info) {
  struct fuse_bufvec buffer = FUSE_BUFVEC_INIT(size);
  (void)ino;
  buffer.buf[0].flags = FUSE_BUF_IS_FD | FUSE_BUF_FD_SEEK;
  buffer.buf[0].fd = info->fh;
  buffer.buf[0].pos = offset;
  fuse_reply_data(req, &buffer, FUSE_BUF_SPLICE_MOVE);
}

static void close_file(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *info) {
  (void)ino;
  close(info->fh);
  fuse_reply_err(req, 0);
}

static const struct fuse_lowlevel_ops operations = {
    .lookup = lookup,       .forget = forget,  .getattr = get_attributes, .readlink = read_link,
    .open = open_file,      .read = read_file, .release = close_file,
};

int main(int count, char **words) {
  if (count != 7) return 2;
  int clock = open(words[1], O_RDWR | O_CREAT, 0600);
  if (clock < 0 || ftruncate(clock, sizeof *free_at)) return 1;
  free_at = mmap(NULL, sizeof *free_at, PROT_READ | PROT_WRITE, MAP_SHARED, clock, 0);
  if (free_at == MAP_FAILED) return 1;
  latency_ns = atof(words[2]) * 1000, service_ns = 1e9 / atof(words[3]), keep_s = atof(words[4]), folder = words[5];
  char *arguments[] = {words[0], "-o", "ro,allow_other,default_permissions,fsname=shared_files"};
  struct fuse_args args = FUSE_ARGS_INIT(3, arguments);
  struct fuse_session *session = fuse_session_new(&args, &operations, sizeof operations, NULL);
  if (!session || fuse_set_signal_handlers(session) || fuse_session_mount(session, words[6])) return 1;
  struct fuse_loop_config *loop = fuse_loop_cfg_create();
  fuse_loop_cfg_set_max_threads(loop, 256); /* a thread for each process that waits */
  int code = fuse_session_loop_mt(session, loop);
  fuse_session_unmount(session);
  return code != 0;
}
