/* The hooks of results and sums in a program that shows them. `compiled.py` puts the name of the source for MACRO.
 * Each row of sums is written behind its size, as a negative number; each result behind its own. Then comes the size of
 * what stands in for the result, and that. */

static void put(const void *from, size_t bytes) {
  if (fwrite(from, 1, bytes, stdout) != bytes) {
    exit(5);
  }
}

static void put_number(int32_t number) {
  put(&number, sizeof(number));
}

static void get(void *to, size_t bytes) {
  if (fread(to, 1, bytes, stdin) != bytes) {
    exit(6);
  }
}

static void show_sums(const void *sums, size_t bytes) {
  put_number(-(int32_t)bytes);
  put(sums, bytes);
}

static void show(const void *tensor, int32_t bytes) {
  int32_t size = 0;
  put_number(bytes);
  put(tensor, (size_t)bytes);
  fflush(stdout);
  get(&size, sizeof(size));
  if (size > 0 && size <= bytes) {
    get((void *)(uintptr_t)tensor, (size_t)size);
  }
}

#define MACRO_LAYER(number, tensor, bytes) show(tensor, bytes)
#define MACRO_STEP(tensor, bytes) show(tensor, bytes)
#define MACRO_SUMS(sums, results, count) show_sums(sums, sizeof(*(sums)) * (size_t)(count));
