/* libpng: a picture is written to memory and read back, with all filters. */
#include "image.h"
#include "png.h"

static unsigned char *pixels, *back, *file;
static size_t length, at;
#define ROOM (WIDTH * HEIGHT * 4)

static void put(png_structp png, png_bytep bytes, size_t n) {
    (void)png;
    bench_check(length + n <= ROOM, "room");
    memcpy(file + length, bytes, n);
    length += n;
}

static void get(png_structp png, png_bytep bytes, size_t n) {
    (void)png;
    bench_check(at + n <= length, "enough bytes");
    memcpy(bytes, file + at, n);
    at += n;
}

static void flush(png_structp png) { (void)png; }

static void prepare(void) {
    pixels = bench_alloc(WIDTH * HEIGHT * 3), back = bench_alloc(WIDTH * HEIGHT * 3), file = bench_alloc(ROOM);
    image_paint(pixels);
}

static void write_picture(void) {
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    bench_check(!setjmp(png_jmpbuf(png)), "writing");
    length = 0;
    png_set_write_fn(png, NULL, put, flush);
    png_set_compression_level(png, 4);
    png_set_filter(png, 0, PNG_ALL_FILTERS);
    png_set_IHDR(png, info, WIDTH, HEIGHT, 8, PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    png_write_info(png, info);
    for (int y = 0; y < HEIGHT; y++)
        png_write_row(png, pixels + y * WIDTH * 3);
    png_write_end(png, NULL);
    png_destroy_write_struct(&png, &info);
}

static void read_picture(void) {
    png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    bench_check(!setjmp(png_jmpbuf(png)), "reading");
    at = 0;
    png_set_read_fn(png, NULL, get);
    png_read_info(png, info);
    for (int y = 0; y < HEIGHT; y++)
        png_read_row(png, back + y * WIDTH * 3, NULL);
    png_read_end(png, NULL);
    png_destroy_read_struct(&png, &info, NULL);
}

static void work(void) {
    write_picture();
    for (int i = 0; i < 4; i++)
        read_picture();
    bench_check(memcmp(pixels, back, WIDTH * HEIGHT * 3) == 0, "round trip");
    bench_add_bytes(file, length);
}

BENCH_MAIN("png", prepare, work)
