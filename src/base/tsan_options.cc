// For tests that fork: TSan would end a child that starts threads. Here the parent has none when it forks, or the child
// starts none; what children do is what is tested.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
extern "C" const char* __tsan_default_options() {
  return "die_after_fork=0";
}
#endif
#endif
