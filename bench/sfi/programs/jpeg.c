/* libjpeg (mozjpeg): a picture is written to memory and read back. */
#include "image.h"
#include "jpeglib.h"

static unsigned char *pixels, *back;

static void prepare(void) {
    pixels = bench_alloc(WIDTH * HEIGHT * 3), back = bench_alloc(WIDTH * HEIGHT * 3);
    image_paint(pixels);
}

static unsigned long write_picture(unsigned char **file, int profile) {
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr error;
    unsigned long length = 0;
    c.err = jpeg_std_error(&error);
    jpeg_create_compress(&c);
    jpeg_mem_dest(&c, file, &length);
    c.image_width = WIDTH, c.image_height = HEIGHT, c.input_components = 3, c.in_color_space = JCS_RGB;
    jpeg_c_set_int_param(&c, JINT_COMPRESS_PROFILE, profile);
    jpeg_set_defaults(&c);
    jpeg_set_quality(&c, 80, TRUE);
    jpeg_start_compress(&c, TRUE);
    for (int y = 0; y < HEIGHT; y++) {
        JSAMPROW row = pixels + y * WIDTH * 3;
        jpeg_write_scanlines(&c, &row, 1);
    }
    jpeg_finish_compress(&c);
    jpeg_destroy_compress(&c);
    return length;
}

static void read_picture(unsigned char *file, unsigned long length) {
    struct jpeg_decompress_struct d;
    struct jpeg_error_mgr error;
    d.err = jpeg_std_error(&error);
    jpeg_create_decompress(&d);
    jpeg_mem_src(&d, file, length);
    jpeg_read_header(&d, TRUE);
    jpeg_start_decompress(&d);
    while (d.output_scanline < d.output_height) {
        JSAMPROW row = back + d.output_scanline * WIDTH * 3;
        jpeg_read_scanlines(&d, &row, 1);
    }
    jpeg_finish_decompress(&d);
    jpeg_destroy_decompress(&d);
}

static void work(void) {
    static const int profiles[] = {JCP_FASTEST, JCP_FASTEST, JCP_FASTEST, JCP_MAX_COMPRESSION};
    for (int i = 0; i < 4; i++) {
        unsigned char *file = NULL;
        unsigned long length = write_picture(&file, profiles[i]);
        for (int j = 0; j < 3; j++)
            read_picture(file, length);
        bench_add_bytes(file, length);
        bench_add_bytes(back, WIDTH * HEIGHT * 3);
        free(file);
    }
}

BENCH_MAIN("jpeg", prepare, work)
