import Glibc

/// One measurement of `make bench`.
struct Benchmark: Sendable {
    let name: String
    let summary: String
    let run: @Sendable (BenchmarkOptions) async throws -> Void
}

/// The options of the command line.
struct BenchmarkOptions: Sendable {
    /// The number of samples, notifications or messages to measure.
    var count: Int?
    /// The folder for written files.
    var folder = "/var/tmp"
}

/// Runs the named benchmarks, by default all.
@main
enum Benchmarks {
    static let all = [Benchmark.history, .decoding]

    static func main() async throws {
        var options = BenchmarkOptions()
        var names: [String] = []
        var words = CommandLine.arguments.dropFirst()
        while let word = words.popFirst() {
            switch word {
            case "--count": options.count = words.popFirst().flatMap { Int($0) }
            case "--folder": options.folder = words.popFirst() ?? options.folder
            default: names.append(word)
            }
        }
        let unknown = names.filter { name in !all.contains { $0.name == name } }
        guard unknown.isEmpty else { return explain() }
        for benchmark in all where names.isEmpty || names.contains(benchmark.name) { try await benchmark.run(options) }
    }

    private static func explain() {
        print("Usage: benchmarks [NAME…] [--count N] [--folder PATH]")
        for benchmark in all { print("  \(benchmark.name)  \(benchmark.summary)") }
        exit(64)
    }
}
