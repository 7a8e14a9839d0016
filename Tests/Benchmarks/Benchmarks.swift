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
    /// The program that inserts each message for itself.
    var peer: String?
    /// The page whose sections are written.
    var page: String?

    /// Writes a table to the section of the page, if there is one.
    func write(_ table: RatioTable, to section: String, corner: String) throws {
        if let page { try PageSection(section, of: page).write(table, corner: corner) }
    }
}

/// Runs the named benchmarks, by default all.
@main
enum Benchmarks {
    static let all = [Benchmark.history, .decoding, .fleet]

    static func main() async throws {
        var options = BenchmarkOptions()
        var names: [String] = []
        var words = CommandLine.arguments.dropFirst()
        while let word = words.popFirst() {
            switch word {
            case "--count": options.count = words.popFirst().flatMap { Int($0) }
            case "--peer": options.peer = words.popFirst()
            case "--page": options.page = words.popFirst()
            case "--folder": options.folder = words.popFirst() ?? options.folder
            default: names.append(word)
            }
        }
        let unknown = names.filter { name in !all.contains { $0.name == name } }
        guard unknown.isEmpty else { return explain() }
        for benchmark in all where names.isEmpty || names.contains(benchmark.name) { try await benchmark.run(options) }
    }

    private static func explain() {
        print("Usage: benchmarks [NAME…] [--count N] [--folder PATH] [--page FILE] [--peer PROGRAM]")
        for benchmark in all { print("  \(benchmark.name)  \(benchmark.summary)") }
        exit(64)
    }
}

// MARK: - Measuring

/// Returns the duration of `body` in seconds.
func seconds(_ body: () async throws -> Void) async rethrows -> Double {
    let start = ContinuousClock.now
    try await body()
    return (ContinuousClock.now - start) / .seconds(1)
}

/// Returns the shortest duration of several runs, in milliseconds.
///
/// Other load only makes runs longer.
func shortestMilliseconds(runs: Int = 5, _ body: () throws -> Void) rethrows -> Double {
    var shortest = Double.infinity
    for _ in 0..<runs {
        let start = ContinuousClock.now
        try body()
        shortest = min(shortest, (ContinuousClock.now - start) / .milliseconds(1))
    }
    return shortest
}

/// The number of bytes that this process has written so far.
func octetsWritten() -> Int {
    guard let file = unsafe fopen("/proc/self/io", "r") else { return 0 }
    defer { unsafe fclose(file) }
    var line = [CChar](repeating: 0, count: 128)
    while unsafe fgets(&line, Int32(line.count), file) != nil {
        let text = String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        guard text.hasPrefix("wchar: ") else { continue }
        return Int(text.dropFirst(7).prefix { $0.isNumber }) ?? 0
    }
    return 0
}

/// The size of a file in bytes; 0 if it is missing.
func octets(of path: String) -> Int {
    var status = stat()
    return unsafe stat(path, &status) == 0 ? Int(status.st_size) : 0
}
