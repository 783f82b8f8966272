// The prelinked executable that shoalc appends a payload to.
#include "core/run.h"

int main(int argc, char **argv) {
  shoal::rt::World world(&argc, &argv);
  return shoal::rt::runExecutable(world, argc, argv);
}
