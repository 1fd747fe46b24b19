// The ensemble of `benches/gpu.py` by hand: one thread for each lane, its state in registers, read and written once.
// lorenz LANES STEPS FOLDER reads y.bin (lanes x 3) and rho.bin from the folder, writes end.bin, and prints the median milliseconds of the kernel.
// Compiled with -DREAL=float or double.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

constexpr int ROUNDS = 7;

struct State {
    REAL x, y, z;
};

__device__ State slope(State s, REAL rho) {
    return {REAL(10) * (s.y - s.x), s.x * (rho - s.z) - s.y, s.x * s.y - REAL(8.0 / 3) * s.z};
}

__device__ State moved(State s, REAL h, State k) {
    return {s.x + h * k.x, s.y + h * k.y, s.z + h * k.z};
}

__global__ void lorenz(const REAL *__restrict__ y, const REAL *__restrict__ rhos, REAL *__restrict__ end, int lanes, int steps) {
    int lane = blockIdx.x * blockDim.x + threadIdx.x;
    if (lane >= lanes) return;
    const REAL h = REAL(0.001), rho = rhos[lane];
    State s = {y[3 * lane], y[3 * lane + 1], y[3 * lane + 2]};
    for (int t = 0; t < steps; ++t) {
        State k1 = slope(s, rho), k2 = slope(moved(s, h / 2, k1), rho), k3 = slope(moved(s, h / 2, k2), rho), k4 = slope(moved(s, h, k3), rho);
        State sum = {k1.x + 2 * k2.x + 2 * k3.x + k4.x, k1.y + 2 * k2.y + 2 * k3.y + k4.y, k1.z + 2 * k2.z + 2 * k3.z + k4.z};
        s = moved(s, h / 6, sum);
    }
    end[3 * lane] = s.x;
    end[3 * lane + 1] = s.y;
    end[3 * lane + 2] = s.z;
}

static void check(cudaError_t error) {
    if (error != cudaSuccess) {
        std::fprintf(stderr, "%s\n", cudaGetErrorString(error));
        std::exit(1);
    }
}

static REAL *filled(const std::string &path, size_t count) {
    std::vector<REAL> values(count);
    std::FILE *file = std::fopen(path.c_str(), "rb");
    if (!file || std::fread(values.data(), sizeof(REAL), count, file) != count) {
        std::fprintf(stderr, "%s cannot be read\n", path.c_str());
        std::exit(1);
    }
    std::fclose(file);
    REAL *device;
    check(cudaMalloc(&device, count * sizeof(REAL)));
    check(cudaMemcpy(device, values.data(), count * sizeof(REAL), cudaMemcpyHostToDevice));
    return device;
}

int main(int count, char **words) {
    if (count != 4) {
        std::fprintf(stderr, "lorenz LANES STEPS FOLDER\n");
        return 2;
    }
    const int lanes = std::atoi(words[1]), steps = std::atoi(words[2]);
    const std::string folder = words[3];
    REAL *y = filled(folder + "/y.bin", 3 * size_t(lanes)), *rho = filled(folder + "/rho.bin", lanes), *end;
    check(cudaMalloc(&end, 3 * size_t(lanes) * sizeof(REAL)));
    cudaEvent_t before, after;
    check(cudaEventCreate(&before));
    check(cudaEventCreate(&after));
    std::vector<float> times;
    for (int round = 0; round <= ROUNDS; ++round) {  // the first one warms up
        check(cudaEventRecord(before));
        lorenz<<<(lanes + 127) / 128, 128>>>(y, rho, end, lanes, steps);
        check(cudaGetLastError());
        check(cudaEventRecord(after));
        check(cudaEventSynchronize(after));
        float milliseconds;
        check(cudaEventElapsedTime(&milliseconds, before, after));
        if (round) times.push_back(milliseconds);
    }
    std::sort(times.begin(), times.end());
    std::vector<REAL> ends(3 * size_t(lanes));
    check(cudaMemcpy(ends.data(), end, ends.size() * sizeof(REAL), cudaMemcpyDeviceToHost));
    std::FILE *file = std::fopen((folder + "/end.bin").c_str(), "wb");
    if (!file || std::fwrite(ends.data(), sizeof(REAL), ends.size(), file) != ends.size()) return 1;
    std::fclose(file);
    std::printf("%g\n", times[ROUNDS / 2]);
    return 0;
}
