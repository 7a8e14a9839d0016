import GattherdGATT
import GattherdModel

/// A compiled advertisement frame.
struct CompiledAdvertisement: Sendable {
    /// The format of the frame's bytes.
    struct Format: Sendable {
        let program: DecodeProgram
        /// The counter that distinguishes a new reading from a repeated one.
        let counter: Counter?
        /// The envelope around the fields.
        let envelope: Envelope?
        /// True for a plain frame of a profile in which others use the device's key: devices with a key send those.
        var isForKeylessDevices = false

        /// True if the frame has other metrics than its counter.
        var hasValues: Bool { program.steps.contains { $0.metric != nil && $0.metric != counter?.metric } }

        /// True if the frame is, or may be, encrypted with the device's key.
        var usesDeviceKey: Bool { envelope != nil || program.decryption?.rule.usesDeviceKey == true }
    }

    /// The field that counts readings.
    struct Counter: Hashable, Sendable {
        let register: Int
        /// The index of the metric, whose value may be unknown; `nil` for flags.
        let metric: Int?
    }

    enum Envelope: String, Hashable, Sendable, CaseIterable {
        case bthome
    }

    let descriptor: AdvertisementDescriptor
    var format: Format
    /// The source of each step of the program.
    private(set) var notes: [FieldNote]
    /// The line of the envelope, or of the frame.
    let line: Int
    private(set) var vectors: [TestVector]

    /// The frame without notes and tests.
    var forDecoding: CompiledAdvertisement {
        var stripped = self
        (stripped.notes, stripped.vectors) = ([], [])
        return stripped
    }
}

extension [CompiledAdvertisement] {
    /// The frames, where a plain frame beside an encrypted one applies only to devices without a key.
    var securedTogether: [CompiledAdvertisement] {
        guard contains(where: \.format.usesDeviceKey) else { return self }
        return map { frame in
            var frame = frame
            frame.format.isForKeylessDevices = !frame.format.usesDeviceKey
            return frame
        }
    }
}

/// The decoder of one device's advertisements.
///
/// A profile may have frames of many models. A device sends a few of them, which get their decoders when they are first
/// received.
final class AdvertisementDecoder: PayloadDecoder {
    private let frames: [CompiledAdvertisement]
    private let sender: Sender?
    private let profile: String
    private let shared: [Int64]
    private var decoders: [FrameDecoder?]

    init(_ frames: [CompiledAdvertisement], _ sender: Sender?, profile: String, shared: [Int64]) {
        (self.frames, self.sender, self.profile, self.shared) = (frames, sender, profile, shared)
        // Replay counters are restored in decoders that exist; only senders with a key have some.
        decoders = frames.map {
            sender?.key == nil ? nil : FrameDecoder($0, sender, profile: profile, shared: shared)
        }
    }

    var replayMarks: [ReplayCounter] { decoders.compactMap { $0?.replayMark } }

    func resume(from marks: [String: UInt32]) {
        for decoder in decoders { decoder?.resume(from: marks) }
    }

    func decode(
        _ payload: Span<UInt8>,
        characteristic: Int,
        into samples: inout [Sample]
    ) throws(PayloadError) {
        guard frames.indices.contains(characteristic) else {
            throw .invalid(reason: "the profile has no advertisement \(characteristic)")
        }
        try decoder(of: characteristic).decode(payload, into: &samples)
    }

    private func decoder(of frame: Int) -> FrameDecoder {
        if let decoder = decoders[frame] { return decoder }
        let decoder = FrameDecoder(frames[frame], sender, profile: profile, shared: shared)
        decoders[frame] = decoder
        return decoder
    }
}

/// The decoder of one frame of one device.
final class FrameDecoder {
    private let format: CompiledAdvertisement.Format
    private var memory: DecodeMemory
    private var envelope: BTHomeEnvelope?
    private var lastCount: Int64?
    /// True if the frame has other metrics than its counter, which alone is then no reading.
    private let hasValues: Bool
    /// True if the device sends other frames, so that this one is a forgery.
    private let isForged: Bool

    init(_ frame: CompiledAdvertisement, _ sender: Sender?, profile: String, shared: [Int64]) {
        let stream = frame.descriptor.stream
        format = frame.format
        hasValues = frame.format.hasValues
        isForged = frame.format.isForKeylessDevices && sender?.key != nil
        memory = DecodeMemory(for: format.program, from: sender, profile: profile, stream: stream)
        memory.shared = shared
        if case .bthome = format.envelope {
            envelope = BTHomeEnvelope(sender, profile: profile, stream: stream)
        }
    }

    var replayMark: ReplayCounter? { envelope?.replayMark ?? memory.decryption?.replayMark }

    func resume(from marks: [String: UInt32]) {
        envelope?.resume(from: marks)
        memory.decryption?.resume(from: marks)
    }

    /// Decodes one payload and appends its samples; none if it repeats an earlier one.
    func decode(_ payload: Span<UInt8>, into samples: inout [Sample]) throws(PayloadError) {
        if isForged { throw .notEncrypted }
        guard envelope != nil else { return try run(payload, &samples) }
        guard let contents = try envelope?.open(payload) else { return }
        try run(contents.span, &samples)
    }

    private func run(_ payload: Span<UInt8>, _ samples: inout [Sample]) throws(PayloadError) {
        let start = samples.count
        do throws(PayloadError) {
            try format.program.run(payload, &memory, into: &samples)
        } catch {
            guard memory.isIgnored else { throw error }
            return samples.removeSubrange(start...)
        }
        let count = count(samples[start...])
        let isRepeated = count != nil && count == lastCount
        lastCount = count
        if isRepeated || memory.decryption?.isRepetition == true { return samples.removeSubrange(start...) }
        let counter = format.counter?.metric
        let isEmpty = samples[start...].allSatisfy { $0.metric == counter }
        if isEmpty, format.program.numbering != nil {
            throw .invalid(reason: "it has no object that the profile knows")
        }
        memory.acceptPayload()
        if isEmpty, hasValues { samples.removeSubrange(start...) }
    }

    /// Returns the counter of the payload; `nil` if absent or unknown.
    private func count(_ samples: ArraySlice<Sample>) -> Int64? {
        guard let counter = format.counter, memory.isPresent[counter.register] else { return nil }
        let isUnknown = samples.contains { $0.metric == counter.metric && $0.value == .null }
        return isUnknown ? nil : memory.registers[counter.register]
    }
}
