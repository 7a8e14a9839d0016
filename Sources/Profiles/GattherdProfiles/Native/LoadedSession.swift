import CGattherdProfile
import GattherdGATT
import GattherdModel

/// The decoder of one connection in a native profile.
@safe final class LoadedSession: ProfileSession {
    private let table: NativeTable
    private let session: UnsafeMutableRawPointer?
    private let metricCounts: [Int]

    init(_ table: NativeTable) {
        self.table = table
        unsafe session = table.raw.session_create?(table.raw.context)
        metricCounts = table.characteristics.map(\.metrics.count)
    }

    deinit {
        if let session = unsafe session { unsafe table.raw.session_destroy?(session) }
    }

    func decode(
        _ payload: Span<UInt8>,
        characteristic: Int,
        into samples: inout [Sample]
    ) throws(PayloadError) {
        guard metricCounts.indices.contains(characteristic), let decode = unsafe table.raw.decode else {
            throw .invalid(reason: "the profile has no characteristic \(characteristic)")
        }
        var answer = NativeResult(metricCount: metricCounts[characteristic])
        swap(&answer.samples, &samples)
        answer.room = answer.samples.count + NativeResult.mostSamples
        let status = unsafe payload.withUnsafeBufferPointer { octets in
            unsafe answer.withSink { sink in
                unsafe decode(session, UInt32(characteristic), octets.baseAddress, octets.count, sink)
            }
        }
        swap(&answer.samples, &samples)
        if let failure = answer.failure { throw .invalid(reason: failure) }
        guard status == GATTHERD_OK else { throw .invalid(reason: "the profile rejects it without a reason") }
    }
}
