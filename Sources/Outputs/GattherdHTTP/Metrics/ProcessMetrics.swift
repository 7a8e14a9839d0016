import GattherdModel
import Glibc

/// The standard process metrics of Prometheus clients.
enum ProcessMetrics {
    /// Returns the metrics that are available; `started` is the start of the process.
    static func families(started: Timestamp?) -> [MetricFamily] {
        var families = [
            MetricFamily("process_cpu_seconds_total", .counter, "Processor time spent", [.init(processorSeconds)])
        ]
        if let pages = residentPages {
            let bytes = pages * sysconf(Int32(_SC_PAGESIZE))
            families.append(MetricFamily("process_resident_memory_bytes", .gauge, "Resident memory size", bytes))
        }
        if let count = descriptorCount {
            families.append(MetricFamily("process_open_fds", .gauge, "Open file descriptors", count))
        }
        if let started {
            let seconds = Double(started.microseconds) / 1_000_000
            families.append(
                MetricFamily(
                    "process_start_time_seconds",
                    .gauge,
                    "Start time of the process, since 1970",
                    [.init(seconds)]
                )
            )
        }
        return families
    }

    private static var processorSeconds: Double {
        var usage = rusage()
        unsafe getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1_000_000 }
        return seconds(usage.ru_utime) + seconds(usage.ru_stime)
    }

    /// The resident pages: the second number of `/proc/self/statm`.
    private static var residentPages: Int? {
        let file = unsafe open("/proc/self/statm", O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: 256)
        let count = unsafe read(file, &bytes, bytes.count)
        let words = bytes.prefix(max(0, count)).split(separator: UInt8(ascii: " "))
        return words.count > 1 ? Int(String(decoding: words[1], as: UTF8.self)) : nil
    }

    private static var descriptorCount: Int? {
        guard let folder = unsafe opendir("/proc/self/fd") else { return nil }
        defer { unsafe closedir(folder) }
        var count = 0
        while unsafe readdir(folder) != nil { count += 1 }
        // Without `.`, `..` and the descriptor of the folder.
        return count - 3
    }
}
