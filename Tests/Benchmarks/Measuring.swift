import Glibc

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
