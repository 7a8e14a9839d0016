import GattherdGATT
import GattherdModel
import GattherdProfiles
import Glibc

extension Benchmark {
    static let decoding = Benchmark(
        name: "decoding",
        summary: "a payload by declarative profiles, and by the native one; an advertisement"
    ) { options in try DecodingBenchmark(options).run() }
}

/// The cost of decoding a payload with declarative profiles and with equivalent native ones.
struct DecodingBenchmark {
    private struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    private static let heartRate = ["16 48 00 04", "06 4B", "19 2C 01 E8 03 00 02 90 02", "10 48 FF 03 00 04 01 04"]
    private static let cadence = ["03 E8 03 00 00 00 04 64 00 00 FE", "03 EB 03 00 00 00 08 66 00 00 02"]
    private static let bike = ["74 0B 3C 05 48 00 21 00 00 01 00 18 00 02 00 00 00 00 56 10 00"]

    private let options: BenchmarkOptions
    private let rounds: Int

    init(_ options: BenchmarkOptions) {
        self.options = options
        rounds = options.count ?? 200_000
    }

    func run() throws {
        let native = try library("libHeartRate.so")
        var table = RatioTable([.init(name: "time", unit: "ns a payload")])
        for (name, path, hex) in [
            ("heart rate 2A37, declarative", standard("heart-rate"), Self.heartRate),
            ("heart rate 2A37, native", native, Self.heartRate),
            ("cycling 2A5B: 2 counters, speed, cadence", standard("cycling-speed-and-cadence"), Self.cadence),
            ("indoor bike 2AD2: 10 metrics", standard("fitness-machine"), Self.bike),
        ] {
            table.add(name, [try cost(of: path, hex.compactMap { Hexadecimal.octets($0) })])
        }
        for (name, path, hex) in AdvertisementCost.examples {
            let registry = try ProfileRegistry.load(paths: [standard(path)])
            guard let profile = registry.profiles.first else {
                throw Failure(description: "there is no profile \(path)")
            }
            table.add(name, [try AdvertisementCost(profile, hex).nanoseconds(rounds: rounds)])
        }
        table.print(title: "decoding: one payload; compared with the declarative heart rate")
        try options.write(table, to: "decoding", corner: "payload")
    }

    /// The time per payload in nanoseconds.
    private func cost(of path: String, _ payloads: [[UInt8]]) throws -> Double {
        let registry = try ProfileRegistry.load(paths: [path])
        guard let decoder = registry.profiles.first?.makeDecoder() else {
            throw Failure(description: registry.refusals.first?.description ?? "there is no profile in \(path)")
        }
        var samples: [Sample] = []
        let time = try shortestMilliseconds {
            for _ in 0..<rounds {
                for payload in payloads {
                    samples.removeAll(keepingCapacity: true)
                    try decoder.decode(payload.span, characteristic: 0, into: &samples)
                }
            }
        }
        return time * 1e6 / Double(rounds * payloads.count)
    }

    private func standard(_ name: String) -> String {
        let package = #filePath.split(separator: "/").dropLast(4).joined(separator: "/")
        return "/\(package)/Plugins/Standard/\(name).yaml"
    }

    /// The path of a library product in this program's folder.
    private func library(_ name: String) throws -> String {
        guard let program = unsafe realpath("/proc/self/exe", nil) else { throw Failure(description: "no /proc") }
        defer { unsafe free(program) }
        let folder = unsafe String(cString: program).split(separator: "/").dropLast().joined(separator: "/")
        return "/\(folder)/\(name)"
    }
}
