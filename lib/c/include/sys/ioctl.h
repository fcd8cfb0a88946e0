/* Programs include it on the way to requests of which there are none here: ioctl says ENOTTY (fixed.c). */
#ifndef PEBBLE_SYS_IOCTL_H
#define PEBBLE_SYS_IOCTL_H

#ifdef __cplusplus
extern "C" {
#endif

int ioctl(int fd, unsigned long request, ...);

#ifdef __cplusplus
}
#endif
#endif
