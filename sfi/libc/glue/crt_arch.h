/* The runtime enters _start with the address of argc in the first argument register. */
__asm__(".text\n.globl " START "\n.type " START ",@function\n" START ":\n\tsub $8, %rsp\n\tcall " START "_c\n\tud2\n.size " START ", .-" START "\n");
