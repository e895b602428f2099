/* What a Cortex-M3 needs before main: the table of vectors, and the start that fills memory. Standard output and the end
 * of the program go to the debugger (semihosting), which is qemu here. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

extern char data_begin[], data_end[], data_source[], bss_begin[], bss_end[], stack_top[];
extern int main(void);
extern void initialise_monitor_handles(void);

static void reset(void) {
  memcpy(data_begin, data_source, (size_t)(data_end - data_begin));
  memset(bss_begin, 0, (size_t)(bss_end - bss_begin));
  initialise_monitor_handles();
  exit(main());
}

static void stop(void) {
  _Exit(3);
}

/* The C library calls them. */
void _init(void) {
}

void _fini(void) {
}

typedef union {
  char *stack;
  void (*call)(void);
} vector;

__attribute__((section(".vectors"), used)) static const vector vectors[16] = {
  {.stack = stack_top}, {.call = reset}, {.call = stop}, {.call = stop}, {.call = stop}, {.call = stop}, {.call = stop},
};
