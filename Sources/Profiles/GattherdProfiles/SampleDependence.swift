package import GattherdGATT
package import GattherdModel

/// The bytes of a payload on which each sample depends, found by trials.
///
/// A native decoder does not report which bytes it reads, so each trial decodes the payload in a new session with one
/// bit changed.
package struct SampleDependence: Sendable {
    /// One sample.
    package struct Row: Hashable, Sendable {
        package let sample: NamedSample
        /// The indices of the bytes that change the value when they change.
        package internal(set) var bytes: [Int] = []
    }

    package let payload: [UInt8]
    /// The samples, in the order of the decoder.
    package private(set) var rows: [Row] = []
    /// The indices of the bytes that decide whether the payload is accepted and which samples it has.
    package private(set) var deciding: [Int] = []
    /// The reason of the reject; `nil` if the payload decodes.
    package private(set) var rejection: PayloadError?

    /// - Parameters:
    ///   - payloads: The payloads of a connection or a sender; the last one is explained.
    ///   - stream: The index of the stream in the profile.
    ///   - profile: The decoding profile.
    ///   - sender: The advertising device; `nil` for any.
    package init(_ payloads: [[UInt8]], stream: Int, of profile: any Profile, from sender: Sender? = nil) {
        payload = payloads.last ?? []
        let earlier = payloads.dropLast()
        let decode = { (last: [UInt8]) throws(PayloadError) in
            try ProfileTools.decode(earlier + [last], characteristic: stream, of: profile, from: sender)
        }
        do throws(PayloadError) {
            rows = try decode(payload).map { Row(sample: $0) }
        } catch {
            rejection = error
        }
        let beginning = profile.isForAdvertisements ? profile.advertisements[stream].beginning : nil
        for index in payload.indices {
            for bit in 0..<8 {
                var trial = payload
                trial[index] ^= 1 << UInt8(bit)
                // The daemon skips frames that begin differently.
                record(beginning?.fits(trial) == false ? nil : try? decode(trial), changedAt: index)
            }
        }
    }

    /// The indices of the bytes without effect on samples.
    package var unused: [Int] {
        let used = rows.reduce(Set(deciding)) { $0.union($1.bytes) }
        return payload.indices.filter { !used.contains($0) }
    }

    /// Records the samples that a trial gave; `nil` if it was rejected.
    private mutating func record(_ samples: [NamedSample]?, changedAt index: Int) {
        guard (samples == nil) == (rejection != nil), samples?.map(\.metric) ?? [] == rows.map(\.sample.metric) else {
            return deciding.appendOnce(index)
        }
        for (row, sample) in (samples ?? []).enumerated() where sample != rows[row].sample {
            rows[row].bytes.appendOnce(index)
        }
    }
}

extension [Int] {
    /// Appends an element unless it is the last one.
    fileprivate mutating func appendOnce(_ element: Int) {
        if last != element { append(element) }
    }
}
