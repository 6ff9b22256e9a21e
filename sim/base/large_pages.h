// Large pages for the heap.
#pragma once

namespace heddle {

// From now on malloc takes small and middle-sized blocks from one run of addresses that the kernel may back with large
// pages: a simulated GPU is tens of megabytes of small objects that are visited in turn, and with pages of 4 KiB the
// look-up of their addresses is a tenth of the run time. To be called once, at the start of main. Memory that nobody
// touches is not taken. Does nothing where the C library or the kernel knows no such thing.
void UseLargePages();

}  // namespace heddle
