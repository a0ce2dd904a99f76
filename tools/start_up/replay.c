/* One emulated rank: makes recorded look-ups again, in their order, with a pause before each.
 *
 *   replay LIST FOLDER PAUSE_US START
 *
 * LIST has one line a look-up: `s NAME` asks for its attributes, `o NAME` opens it. It begins when the file START is there, and
 * prints the seconds that it took.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

int main(int count, char **words) {
  if (count != 5) return 2;
  FILE *list = fopen(words[1], "r");
  if (!list || chdir(words[2])) return 1;
  long pause_ns = atof(words[3]) * 1000;
  static char text[8 << 20];
  size_t size = fread(text, 1, sizeof text - 1, list);
  text[size] = 0;
  prctl(PR_SET_TIMERSLACK, 1);
  while (access(words[4], F_OK)) usleep(2000);
  struct timespec began, ended, pause = {pause_ns / 1000000000, pause_ns % 1000000000};
  clock_gettime(CLOCK_MONOTONIC, &began);
  for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
    struct stat attributes;
    if (pause_ns) nanosleep(&pause, NULL);
    int file = line[0] == 'o' ? open(line + 2, O_RDONLY | O_CLOEXEC) : stat(line + 2, &attributes) - 1;
    if (file >= 0) close(file);
  }
  clock_gettime(CLOCK_MONOTONIC, &ended);
  printf("%.4f\n", ended.tv_sec - began.tv_sec + (ended.tv_nsec - began.tv_nsec) / 1e9);
  return 0;
}
