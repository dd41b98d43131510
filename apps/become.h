// Another program of this installation takes this process over.
#pragma once

#include <string>

namespace foreload {

// With the same arguments, from the folder that this program lies in. Returns where there is none.
void become(const std::string& program, char** arguments);

}  // namespace foreload
