import CGattherdProfile
import GattherdGATT
import GattherdModel

/// The result of one call of a native profile.
struct NativeResult {
    /// The maximum number of samples per payload.
    static let maximumSamples = 4096
    private static let longestText = 4096

    var samples: [Sample] = []
    /// The maximum number of `samples`.
    var room = 0
    /// The reason of a failure: the profile's, or a violation of the contract.
    private(set) var failure: String?
    /// The advertisement's counter.
    private(set) var counter: UInt32?
    private let metrics: [MetricDescriptor]
    /// A bit for each metric that has a value; a stream has at most 64 metrics.
    private var given: UInt64 = 0

    init(metrics: [MetricDescriptor]) {
        self.metrics = metrics
    }

    /// Runs `body` with a sink that writes to this result.
    mutating func withSink(_ body: (UnsafePointer<gattherd_sink>) -> Int32) -> Int32 {
        unsafe withUnsafeMutablePointer(to: &self) { answer in
            var sink = unsafe gattherd_sink(
                struct_size: UInt32(MemoryLayout<gattherd_sink>.size),
                reserved: 0,
                context: answer,
                integer: { unsafe at($0)?.pointee.add($1, .integer($2)) },
                real: { unsafe at($0)?.pointee.add($1, real: $2) },
                boolean: { unsafe at($0)?.pointee.add($1, .boolean($2 != 0)) },
                text: { unsafe at($0)?.pointee.add($1, $2, size: $3) },
                null: { unsafe at($0)?.pointee.add($1, .null) },
                fail: { unsafe at($0)?.pointee.fail($1, size: $2) },
                counter: { unsafe at($0)?.pointee.counter = $1 }
            )
            return unsafe body(&sink)
        }
    }

    private mutating func add(_ metric: UInt32, _ value: SampleValue) {
        guard metric < metrics.count else { return fail("the profile gave metric \(metric), which it did not declare") }
        guard samples.count < room else { return fail("the profile gave more than \(Self.maximumSamples) samples") }
        let (metric, descriptor) = (Int(metric), metrics[Int(metric)])
        guard descriptor.isRepeated || isFirst(metric) else {
            return fail("the profile gave metric '\(descriptor.name)' twice, but did not declare it as repeated")
        }
        samples.append(Sample(metric: metric, value: value))
    }

    /// Records that a metric has a value; returns false if it had one before.
    private mutating func isFirst(_ metric: Int) -> Bool {
        let bit: UInt64 = 1 << metric
        defer { given |= bit }
        return given & bit == 0
    }

    /// Adds a number, rounded to remove floating-point noise: 2049 × 0.01 is 20.49.
    private mutating func add(_ metric: UInt32, real: Double) {
        add(metric, real.isFinite ? .real(real.rounded(toDigits: Double.reliableDigits)) : .null)
    }

    private mutating func add(_ metric: UInt32, _ utf8: UnsafePointer<CChar>?, size: Int) {
        guard let text = unsafe Self.text(utf8, size: size) else {
            return fail("the profile gave a text that is NULL or too long")
        }
        add(metric, .text(text.withoutNULs))
    }

    private mutating func fail(_ utf8: UnsafePointer<CChar>?, size: Int) {
        fail(unsafe Self.text(utf8, size: size) ?? "the profile rejects it, and its reason is not text")
    }

    private mutating func fail(_ reason: String) {
        if failure == nil { failure = reason }
    }

    private static func text(_ utf8: UnsafePointer<CChar>?, size: Int) -> String? {
        guard (0...longestText).contains(size) else { return nil }
        guard let utf8 = unsafe utf8 else { return size == 0 ? "" : nil }
        return unsafe String(decoding: UnsafeRawBufferPointer(start: utf8, count: size), as: UTF8.self)
    }
}

/// Returns the result that a sink's context points to.
private func at(_ context: UnsafeMutableRawPointer?) -> UnsafeMutablePointer<NativeResult>? {
    unsafe context?.assumingMemoryBound(to: NativeResult.self)
}
