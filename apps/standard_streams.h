// Standard input, output and error that are there, whatever the caller closed.
#pragma once

namespace lockstep::apps {

// Opens /dev/null on each of descriptors 0 to 2 that is closed. To be called first in main:
// otherwise the next file or socket takes the number, and what is printed goes into it.
void open_standard_streams();

}  // namespace lockstep::apps
