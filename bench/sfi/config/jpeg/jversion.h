/* mozjpeg's version, which is of no importance here. */
#define JVERSION "bench"
#define JCOPYRIGHT "The libjpeg-turbo Project, Mozilla, and many others"
#define JCOPYRIGHT_SHORT JCOPYRIGHT
