/* The hooks of a program that shows what is within it. `compiled.py` puts the name of the source for MACRO.
 * `mode`, the first word of the command line, says which:
 *
 * layers: each layer is written, behind its size. Then comes the size of what stands in for it, and that.
 * steps: the same of each layer and step, and before each the rows of sums before it, behind their size.
 * trials: each layer reads a head: rows of sums to try, channels, bytes of a sum, and bytes that then stand in for those
 *   of its tensor.
 *   For each block of sums of the first row of each loop it writes the size of a result, the channels, and all results;
 *   then 0. */

static char mode;
static size_t shown, room;
static char *shown_sums;
static int32_t head[4], has_head, line, place, row, rows_left, begin, block;
static char *tried, *saved, *sums_at, *results_at;
static size_t sum_size, row_bytes;

static void get(void *to, size_t bytes) {
  if (fread(to, 1, bytes, stdin) != bytes) {
    exit(6);
  }
}

static void put(const void *from, size_t bytes) {
  if (bytes > 0 && fwrite(from, 1, bytes, stdout) != bytes) {
    exit(5);
  }
}

static void put_number(int32_t number) {
  put(&number, sizeof(number));
}

static void *resized(void *old, size_t bytes) {
  void *place = realloc(old, bytes + 1);
  if (place == NULL) {
    exit(7);
  }
  return place;
}

static void keep_sums(const void *sums, size_t at, size_t bytes) {
  if (at + bytes > room) {
    room = 2 * (at + bytes);
    shown_sums = resized(shown_sums, room);
  }
  memcpy(shown_sums + at, sums, bytes);
  shown = at + bytes > shown ? at + bytes : shown;
}

static void show(const void *tensor, int32_t bytes) {
  int32_t size = 0;
  if (mode == 's') {
    put_number((int32_t)shown);
    put(shown_sums, shown);
    shown = 0;
  }
  put_number(bytes);
  put(tensor, (size_t)bytes);
  fflush(stdout);
  get(&size, sizeof(size));
  if (size > 0 && size <= bytes) {
    get((void *)(uintptr_t)tensor, (size_t)size);
  }
}

static void get_head(void) {
  if (!has_head) {
    get(head, sizeof(head));
    const size_t bytes = (size_t)head[0] * (size_t)head[1] * (size_t)head[2];
    tried = resized(tried, bytes);
    get(tried, bytes);
    has_head = 1;
    line = 0;
  }
}

static void place_sums(void) {
  const char *from = tried + ((size_t)row * (size_t)head[1] + (size_t)begin) * (size_t)head[2];
  for (int32_t j = 0; j < block; j++) {
    int64_t wide = 0;
    int32_t narrow = 0;
    if ((size_t)head[2] == sizeof(wide)) {
      memcpy(&wide, from + (size_t)j * sizeof(wide), sizeof(wide));
    } else {
      memcpy(&narrow, from + (size_t)j * sizeof(narrow), sizeof(narrow));
      wide = narrow;
    }
    if (sum_size == sizeof(int64_t)) {
      ((int64_t *)(void *)sums_at)[j] = wide;
    } else {
      ((int32_t *)(void *)sums_at)[j] = (int32_t)wide;
    }
  }
}

/* The first row of each loop, by its line, is computed again, block by block. first: the index of its first sum. */
static int first_sums(int at, void *sums, size_t size, void *results, size_t result_size, int32_t first, int32_t count) {
  if (mode != 't') {
    if (mode == 's') {
      keep_sums(sums, size * (size_t)first, size * (size_t)count);
    }
    return 1;
  }
  get_head();
  if (at < line || head[0] == 0 || count > head[1] || (at == line && first / head[1] != place)) {
    return 1;
  }
  line = at;
  place = first / head[1];
  begin = first % head[1];
  block = count;
  row = 0;
  rows_left = head[0];
  sums_at = sums;
  sum_size = size;
  results_at = results;
  row_bytes = result_size * (size_t)count;
  saved = resized(saved, (result_size + size) * (size_t)count);
  memcpy(saved, results, row_bytes);
  memcpy(saved + row_bytes, sums, size * (size_t)count);
  put_number((int32_t)result_size);
  put_number(count);
  place_sums();
  return 1;
}

static int next_sums(void) {
  if (rows_left == 0) {
    return 0;
  }
  put(results_at, row_bytes);
  memcpy(results_at, saved, row_bytes);
  row++;
  rows_left--;
  if (rows_left > 0) {
    place_sums();
  } else {
    memcpy(sums_at, saved + row_bytes, sum_size * (size_t)block);
  }
  return 1;
}

static void hook_layer(const void *tensor, int32_t bytes) {
  if (mode != 't') {
    show(tensor, bytes);
  } else {
    get_head();
    put_number(0);
    get((void *)(uintptr_t)tensor, (size_t)head[3]);
    has_head = 0;
  }
}

static void hook_step(const void *tensor, int32_t bytes) {
  if (mode == 's') {
    show(tensor, bytes);
  }
}

#define MACRO_LAYER(number, tensor, bytes) hook_layer(tensor, bytes)
#define MACRO_STEP(tensor, bytes) hook_step(tensor, bytes)
#define MACRO_SUMS(sums, results, first, count)                                                              \
  for (int more = first_sums(__LINE__, sums, sizeof(*(sums)), (results) + (first), sizeof(*(results)), first, count); \
       more; more = next_sums())
