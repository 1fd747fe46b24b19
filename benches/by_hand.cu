// The workloads of `benches/gpu.py` by hand. by_hand NAME FOLDER SIZE STEPS reads the arguments 0.bin, 1.bin … from the folder, writes end.bin,
// and prints the median milliseconds of its kernels. Compiled with -DREAL=float or double.
// Ensembles: one thread for each lane, its state in registers, arguments read and results written once.

#include <cub/device/device_scan.cuh>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/iterator/transform_output_iterator.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

constexpr int ROUNDS = 7, BLOCK = 128;

static void check(cudaError_t error) {
    if (error != cudaSuccess) {
        std::fprintf(stderr, "%s\n", cudaGetErrorString(error));
        std::exit(1);
    }
}

// systems -------------------------------------------------------------------------------------------------------------

template <int N> struct State {
    REAL at[N];
};

template <int N> __device__ State<N> moved(State<N> s, REAL h, const State<N> &k) {
    for (int i = 0; i < N; ++i) s.at[i] += h * k.at[i];
    return s;
}

struct Lorenz {
    REAL rho;
    static constexpr int N = 3;
    __device__ State<3> operator()(const State<3> &s) const {
        const REAL *y = s.at;
        return {{REAL(10) * (y[1] - y[0]), y[0] * (rho - y[2]) - y[1], y[0] * y[1] - REAL(8.0 / 3) * y[2]}};
    }
    // the transposed Jacobian at s, times g
    __device__ State<3> back(const State<3> &s, const State<3> &g) const {
        const REAL *y = s.at, *d = g.at;
        return {{REAL(-10) * d[0] + (rho - y[2]) * d[1] + y[1] * d[2], REAL(10) * d[0] - d[1] + y[0] * d[2], -y[0] * d[1] - REAL(8.0 / 3) * d[2]}};
    }
};

struct Seir {
    REAL beta;
    static constexpr int N = 4;
    __device__ State<4> operator()(const State<4> &y) const {
        const REAL caught = beta * y.at[0] * y.at[2], ill = REAL(0.2) * y.at[1], well = REAL(0.1) * y.at[2];
        return {{-caught, caught - ill, ill - well, well}};
    }
};

struct HodgkinHuxley {
    REAL current;
    static constexpr int N = 4;
    static __device__ REAL ratio(REAL x) { return fabs(x) < REAL(1e-3) ? REAL(1) - REAL(0.5) * x : x / (exp(x) - REAL(1)); }
    __device__ State<4> operator()(const State<4> &y) const {
        const REAL v = y.at[0], m = y.at[1], h = y.at[2], n = y.at[3], u = v + REAL(65);
        const REAL am = ratio((REAL(25) - u) / REAL(10)), bm = REAL(4) * exp(-u / REAL(18));
        const REAL ah = REAL(0.07) * exp(-u / REAL(20)), bh = REAL(1) / (exp((REAL(30) - u) / REAL(10)) + REAL(1));
        const REAL an = REAL(0.1) * ratio((REAL(10) - u) / REAL(10)), bn = REAL(0.125) * exp(-u / REAL(80));
        const REAL ions = REAL(120) * m * m * m * h * (v - REAL(50)) + REAL(36) * n * n * n * n * (v + REAL(77)) + REAL(0.3) * (v + REAL(54.4));
        return {{current - ions, am * (REAL(1) - m) - bm * m, ah * (REAL(1) - h) - bh * h, an * (REAL(1) - n) - bn * n}};
    }
};

// methods -------------------------------------------------------------------------------------------------------------

struct Rk4 {
    template <class F> static __device__ State<F::N> step(const F &f, const State<F::N> &s, REAL h) {
        const auto k1 = f(s), k2 = f(moved(s, h / 2, k1)), k3 = f(moved(s, h / 2, k2)), k4 = f(moved(s, h, k3));
        return moved(moved(moved(moved(s, h / 6, k1), h / 3, k2), h / 3, k3), h / 6, k4);
    }
};

struct Tsit5 {
    template <class F> static __device__ State<F::N> step(const F &f, const State<F::N> &s, REAL h) {
        const REAL a[6][6] = {
            {REAL(0.161)},
            {REAL(-0.008480655492356989), REAL(0.335480655492357)},
            {REAL(2.8971530571054935), REAL(-6.359448489975075), REAL(4.3622954328695815)},
            {REAL(5.325864828439257), REAL(-11.748883564062828), REAL(7.4955393428898365), REAL(-0.09249506636175525)},
            {REAL(5.86145544294642), REAL(-12.92096931784711), REAL(8.159367898576159), REAL(-0.071584973281401), REAL(-0.028269050394068383)},
            {REAL(0.09646076681806523), REAL(0.01), REAL(0.4798896504144996), REAL(1.379008574103742), REAL(-3.290069515436081), REAL(2.324710524099774)},
        };
        State<F::N> k[6];
        State<F::N> next = s;
#pragma unroll
        for (int i = 0; i < 6; ++i) {
            k[i] = f(next);
            next = s;
#pragma unroll
            for (int j = 0; j <= i; ++j) next = moved(next, h * a[i][j], k[j]);
        }
        return next;
    }
};

// kernels -------------------------------------------------------------------------------------------------------------

template <class F, class Method> __global__ void ensemble(const REAL *__restrict__ starts, const REAL *__restrict__ parameters, REAL *__restrict__ end, int lanes, int steps, REAL h) {
    const int lane = blockIdx.x * blockDim.x + threadIdx.x;
    if (lane >= lanes) return;
    const F f{parameters[lane]};
    State<F::N> s;
    for (int i = 0; i < F::N; ++i) s.at[i] = starts[size_t(F::N) * lane + i];
    for (int t = 0; t < steps; ++t) s = Method::step(f, s, h);
    for (int i = 0; i < F::N; ++i) end[size_t(F::N) * lane + i] = s.at[i];
}

// the largest share of the infectious
__global__ void epidemic(const REAL *__restrict__ betas, REAL *__restrict__ peak, int lanes, int steps, REAL h) {
    const int lane = blockIdx.x * blockDim.x + threadIdx.x;
    if (lane >= lanes) return;
    const Seir f{betas[lane]};
    State<4> s{{REAL(0.99), REAL(0.01), 0, 0}};
    REAL most = 0;
    for (int t = 0; t < steps; ++t) {
        s = Rk4::step(f, s, h);
        most = max(most, s.at[2]);
    }
    peak[lane] = most;
}

// of the mean square of the end of Lorenz, in the start; `path`: steps x 3 x lanes
__global__ void gradient(const REAL *__restrict__ starts, const REAL *__restrict__ parameters, REAL *__restrict__ result, REAL *__restrict__ path, int lanes, int steps, REAL h) {
    const int lane = blockIdx.x * blockDim.x + threadIdx.x;
    if (lane >= lanes) return;
    const Lorenz f{parameters[lane]};
    State<3> s;
    for (int i = 0; i < 3; ++i) s.at[i] = starts[3 * size_t(lane) + i];
    for (int t = 0; t < steps; ++t) {
        for (int i = 0; i < 3; ++i) path[(3 * size_t(t) + i) * lanes + lane] = s.at[i];
        s = Rk4::step(f, s, h);
    }
    State<3> g;
    for (int i = 0; i < 3; ++i) g.at[i] = REAL(2.0 / 3) * s.at[i];
    const State<3> none{{0, 0, 0}};
    for (int t = steps - 1; t >= 0; --t) {
        for (int i = 0; i < 3; ++i) s.at[i] = path[(3 * size_t(t) + i) * lanes + lane];
        const auto y2 = moved(s, h / 2, f(s)), y3 = moved(s, h / 2, f(y2)), y4 = moved(s, h, f(y3));
        const auto d4 = f.back(y4, moved(none, h / 6, g));
        const auto d3 = f.back(y3, moved(moved(none, h / 3, g), h, d4));
        const auto d2 = f.back(y2, moved(moved(none, h / 3, g), h / 2, d3));
        const auto d1 = f.back(s, moved(moved(none, h / 6, g), h / 2, d2));
        g = moved(moved(moved(moved(g, 1, d1), 1, d2), 1, d3), 1, d4);
    }
    for (int i = 0; i < 3; ++i) result[3 * size_t(lane) + i] = g.at[i];
}

// Philox4x32-10: four words for a count and a key
__device__ uint4 words(uint4 c, uint2 k) {
#pragma unroll
    for (int round = 0; round < 10; ++round) {
        const unsigned long long x = 0xD2511F53ull * c.x, y = 0xCD9E8D57ull * c.z;
        c = make_uint4(unsigned(y >> 32) ^ c.y ^ k.x, unsigned(y), unsigned(x >> 32) ^ c.w ^ k.y, unsigned(x));
        k.x += 0x9E3779B9u;
        k.y += 0xBB67AE85u;
    }
    return c;
}

__global__ void option(const REAL *__restrict__ volatilities, REAL *__restrict__ payoff, int lanes, int steps) {
    const int lane = blockIdx.x * blockDim.x + threadIdx.x;
    if (lane >= lanes) return;
    const REAL volatility = volatilities[lane], drift = REAL(-0.5) * volatility * volatility / steps, scale = volatility / sqrt(REAL(steps));
    REAL price = 1;
    for (int t = 0; t < steps; t += 2) {  // two normal numbers at once, by Box and Muller
        const uint4 w = words(make_uint4(t, lane, 0, 0), make_uint2(7, 11));
        const REAL u = (REAL(w.x) + REAL(w.y) * REAL(0x1p-32) + REAL(0x1p-33)) * REAL(0x1p-32), v = (REAL(w.z) + REAL(w.w) * REAL(0x1p-32)) * REAL(0x1p-31);
        const REAL length = sqrt(REAL(-2) * log(u)), one = length * cospi(v), other = length * sinpi(v);
        price *= exp(drift + scale * one);
        if (t + 1 < steps) price *= exp(drift + scale * other);
    }
    payoff[lane] = max(price - REAL(1), REAL(0));
}

__global__ void heat(const REAL *__restrict__ u, REAL *__restrict__ next, int n) {
    const int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= n || j >= n) return;
    const size_t row = size_t(i) * n, above = size_t(i ? i - 1 : n - 1) * n, below = size_t(i + 1 < n ? i + 1 : 0) * n;
    const int left = j ? j - 1 : n - 1, right = j + 1 < n ? j + 1 : 0;
    const REAL here = u[row + j];
    next[row + j] = here + REAL(0.2) * (u[above + j] + u[below + j] + u[row + left] + u[row + right] - 4 * here);
}

// x -> a x + b, one after the other
struct Affine {
    REAL a, b;
};

struct Then {
    __host__ __device__ Affine operator()(const Affine &first, const Affine &second) const {
        return {second.a * first.a, second.a * first.b + second.b};
    }
};

struct Coefficients {
    const REAL *a, *b;
    __host__ __device__ Affine operator()(long long t) const { return {a[t], b[t]}; }
};

struct Row {
    REAL start;
    __host__ __device__ REAL operator()(const Affine &to) const { return to.a * start + to.b; }
};

// on the host ---------------------------------------------------------------------------------------------------------

static REAL *memory(size_t count) {
    REAL *device;
    check(cudaMalloc(&device, count * sizeof(REAL)));
    return device;
}

static REAL *filled(const std::string &path, size_t count) {
    std::vector<REAL> values(count);
    std::FILE *file = std::fopen(path.c_str(), "rb");
    if (!file || std::fread(values.data(), sizeof(REAL), count, file) != count) {
        std::fprintf(stderr, "%s cannot be read\n", path.c_str());
        std::exit(1);
    }
    std::fclose(file);
    REAL *device = memory(count);
    check(cudaMemcpy(device, values.data(), count * sizeof(REAL), cudaMemcpyHostToDevice));
    return device;
}

static void timed(const std::function<void()> &run) {
    cudaEvent_t before, after;
    check(cudaEventCreate(&before));
    check(cudaEventCreate(&after));
    std::vector<float> times;
    for (int round = 0; round <= ROUNDS; ++round) {  // the first one warms up
        check(cudaEventRecord(before));
        run();
        check(cudaGetLastError());
        check(cudaEventRecord(after));
        check(cudaEventSynchronize(after));
        float milliseconds;
        check(cudaEventElapsedTime(&milliseconds, before, after));
        if (round) times.push_back(milliseconds);
    }
    std::sort(times.begin(), times.end());
    std::printf("%g\n", times[ROUNDS / 2]);
}

static void saved(const REAL *device, size_t count, const std::string &path) {
    std::vector<REAL> values(count);
    check(cudaMemcpy(values.data(), device, count * sizeof(REAL), cudaMemcpyDeviceToHost));
    std::FILE *file = std::fopen(path.c_str(), "wb");
    if (!file || std::fwrite(values.data(), sizeof(REAL), count, file) != count) std::exit(1);
    std::fclose(file);
}

template <class F, class Method> static void run_ensemble(const std::string &folder, int lanes, int steps, REAL h) {
    const size_t count = size_t(F::N) * lanes;
    REAL *starts = filled(folder + "/0.bin", count), *parameters = filled(folder + "/1.bin", lanes), *end = memory(count);
    timed([&] { ensemble<F, Method><<<(lanes + BLOCK - 1) / BLOCK, BLOCK>>>(starts, parameters, end, lanes, steps, h); });
    saved(end, count, folder + "/end.bin");
}

static void run_gradient(const std::string &folder, int lanes, int steps) {
    const size_t count = 3 * size_t(lanes);
    const int most = std::min(lanes, 1 << 20);  // lanes at once: their paths take memory
    REAL *starts = filled(folder + "/0.bin", count), *parameters = filled(folder + "/1.bin", lanes), *end = memory(count);
    REAL *path = memory(3 * size_t(steps) * most);
    timed([&] {
        for (int first = 0; first < lanes; first += most) {
            const int some = std::min(most, lanes - first);
            gradient<<<(some + BLOCK - 1) / BLOCK, BLOCK>>>(starts + 3 * size_t(first), parameters + first, end + 3 * size_t(first), path, some, steps, REAL(0.001));
        }
    });
    saved(end, count, folder + "/end.bin");
}

static void run_heat(const std::string &folder, int n, int steps) {
    const size_t count = size_t(n) * n;
    REAL *start = filled(folder + "/0.bin", count), *one = memory(count), *other = memory(count);
    const dim3 block(32, 4), grid((n + 31) / 32, (n + 3) / 4);
    timed([&] {
        const REAL *from = start;
        for (int t = 0; t < steps; ++t) {
            heat<<<grid, block>>>(from, one, n);
            from = one;
            std::swap(one, other);
        }
    });
    saved(steps ? other : start, count, folder + "/end.bin");  // written last, then exchanged
}

static void run_recurrence(const std::string &folder, long long n) {
    REAL *a = filled(folder + "/0.bin", n), *b = filled(folder + "/1.bin", n), *rows = memory(n), start;
    std::FILE *file = std::fopen((folder + "/2.bin").c_str(), "rb");
    if (!file || std::fread(&start, sizeof(REAL), 1, file) != 1) std::exit(1);
    std::fclose(file);
    const auto coefficients = thrust::make_transform_iterator(thrust::counting_iterator<long long>(0), Coefficients{a, b});
    const auto places = thrust::make_transform_output_iterator(rows, Row{start});
    void *scratch = nullptr;
    size_t bytes = 0;
    check(cub::DeviceScan::InclusiveScan(scratch, bytes, coefficients, places, Then{}, n));
    check(cudaMalloc(&scratch, bytes));
    timed([&] { check(cub::DeviceScan::InclusiveScan(scratch, bytes, coefficients, places, Then{}, n)); });
    saved(rows, n, folder + "/end.bin");
}

int main(int count, char **words) {
    if (count != 5) {
        std::fprintf(stderr, "by_hand NAME FOLDER SIZE STEPS\n");
        return 2;
    }
    const std::string name = words[1], folder = words[2];
    const long long size = std::atoll(words[3]);
    const int lanes = int(size), steps = std::atoi(words[4]);
    if (name == "lorenz rk4") run_ensemble<Lorenz, Rk4>(folder, lanes, steps, REAL(0.001));
    if (name == "lorenz tsit5") run_ensemble<Lorenz, Tsit5>(folder, lanes, steps, REAL(0.001));
    if (name == "lorenz rk4 gradient") run_gradient(folder, lanes, steps);
    if (name == "hodgkin-huxley") run_ensemble<HodgkinHuxley, Rk4>(folder, lanes, steps, REAL(0.01));
    if (name == "heat") run_heat(folder, lanes, steps);
    if (name == "recurrence") run_recurrence(folder, size);
    if (name == "seir" || name == "options") {
        REAL *parameters = filled(folder + "/0.bin", lanes), *end = memory(lanes);
        const int blocks = (lanes + BLOCK - 1) / BLOCK;
        timed([&] {
            if (name == "seir") epidemic<<<blocks, BLOCK>>>(parameters, end, lanes, steps, REAL(0.1));
            else option<<<blocks, BLOCK>>>(parameters, end, lanes, steps);
        });
        saved(end, lanes, folder + "/end.bin");
    }
    return 0;
}
