/* poke DEVICE WORD [NUMBER]: writes so many bytes to a device, or calls ioctl(2) with the number,
 * again and again with pauses. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

int main(int count, char **words)
{
	static char bytes[1 << 20];
	long number = count > 3 ? atol(words[3]) : 1;
	int device = count > 2 ? open(words[1], O_RDWR) : -1;

	if (device < 0 || number < 0 || number > (long)sizeof(bytes)) {
		fprintf(stderr, "usage: poke DEVICE ioctl|write [NUMBER]\n");
		return 2;
	}
	for (;;) {
		if (!strcmp(words[2], "ioctl"))
			ioctl(device, 1, number);
		else if (write(device, bytes, number) < 0)
			return 1;
		usleep(2000);
	}
}
