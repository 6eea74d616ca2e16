/* A libcuda.so.1 with one function. The test connects it to the fake libcupti. */
static int (*around)(void);

void fake_connect(int (*function)(void)) { around = function; }

int cuDriverGetVersion(int *version) {
  *version = 13000;
  return around ? around() : 0;
}
