import GattherdCapture
import GattherdGATT
import GattherdModel
import GattherdProfiles

/// The decoders of one connection.
struct ReplayDecoder {
    enum Outcome {
        case decoded(CharacteristicDescriptor, profile: String, [NamedSample])
        case rejected(CharacteristicDescriptor, profile: String, reason: String)
        /// No profile decodes the characteristic.
        case unknown
    }

    /// The messages of one characteristic, and the notification that was received last.
    private struct OpenMessages {
        var assembly: MessageAssembly
        var newest: CaptureValue
        let profile: any Profile
        let index: Int
    }

    private let profiles: [any Profile]
    private var decoders: [String: any PayloadDecoder] = [:]
    private var messages: [[BluetoothUUID]: OpenMessages] = [:]

    init(_ profiles: [any Profile]) {
        self.profiles = profiles
    }

    /// Decodes a value; returns the outcome of each message that it completes.
    mutating func decode(_ value: CaptureValue) -> [Outcome] {
        for profile in profiles {
            let characteristics = profile.characteristics
            let fitting = characteristics.indices.filter { characteristics[$0].fits(value, of: profile) }
            guard let index = fitting.first else { continue }
            guard let rule = characteristics[index].messages else {
                let sharing = fitting.dropFirst().filter { characteristics[$0].isOnlyDownloaded }
                return [decode(value.octets, profile, [index] + sharing)]
            }
            return decode(value, profile, index, rule)
        }
        return [.unknown]
    }

    /// Decodes a value with the first stream that accepts it: blocks of stored records may share a characteristic.
    private mutating func decode(_ octets: [UInt8], _ profile: any Profile, _ indices: [Int]) -> Outcome {
        var first: Outcome?
        for index in indices {
            let outcome = decode(octets, profile, index)
            if outcome.isDecoded { return outcome }
            first = first ?? outcome
        }
        return first ?? .unknown
    }

    /// Ends the connection; returns the outcomes of messages without an end.
    mutating func finish() -> [(value: CaptureValue, outcome: Outcome)] {
        let all = messages.values.sorted { $0.newest.time < $1.newest.time }
        messages.removeAll()
        return all.flatMap { open in
            var assembly = open.assembly
            var outcomes: [(value: CaptureValue, outcome: Outcome)] = []
            assembly.finish { message, discarded in
                let outcome = outcome(of: message, discarded, open.profile, open.index)
                outcomes.append((open.newest, outcome))
                return outcome.isDecoded
            }
            return outcomes
        }
    }

    /// Decodes the messages that a notification completes.
    private mutating func decode(
        _ value: CaptureValue,
        _ profile: any Profile,
        _ index: Int,
        _ rule: MessageRule
    ) -> [Outcome] {
        let key = [value.service, value.characteristic]
        var assembly = messages[key]?.assembly ?? MessageAssembly(rule)
        var outcomes: [Outcome] = []
        assembly.receive(value.octets.span, at: value.time) { message, discarded in
            outcomes.append(outcome(of: message, discarded, profile, index))
            return outcomes.last?.isDecoded ?? false
        }
        messages[key] = OpenMessages(assembly: assembly, newest: value, profile: profile, index: index)
        return outcomes
    }

    /// Decodes a message; rejects discarded bytes.
    private mutating func outcome(
        of message: Span<UInt8>,
        _ discarded: PayloadError?,
        _ profile: any Profile,
        _ index: Int
    ) -> Outcome {
        guard let discarded else { return decode(message.indices.map { message[$0] }, profile, index) }
        let descriptor = profile.characteristics[index]
        return .rejected(descriptor, profile: profile.name, reason: discarded.description)
    }

    private mutating func decode(_ octets: [UInt8], _ profile: any Profile, _ index: Int) -> Outcome {
        let decoder = decoders[profile.name] ?? profile.makeDecoder()
        decoders[profile.name] = decoder
        let descriptor = profile.characteristics[index]
        var samples: [Sample] = []
        do throws(PayloadError) {
            try decoder.decode(octets.span, characteristic: index, into: &samples)
            let named = try [NamedSample](samples, of: descriptor.metrics)
            return .decoded(descriptor, profile: profile.name, named)
        } catch {
            return .rejected(descriptor, profile: profile.name, reason: error.description)
        }
    }
}

extension ReplayDecoder.Outcome {
    fileprivate var isDecoded: Bool { if case .decoded = self { true } else { false } }
}

extension [any Profile] {
    /// Returns the profiles that a daemon would use: those that name a service first.
    func serving(_ services: Set<BluetoothUUID>) -> [any Profile] {
        filter { !services.isDisjoint(with: $0.services) } + filter(\.services.isEmpty)
    }
}

extension CharacteristicDescriptor {
    fileprivate func fits(_ value: CaptureValue, of profile: any Profile) -> Bool {
        guard uuid == value.characteristic else { return false }
        if let service { return service == value.service }
        return profile.services.isEmpty || profile.services.contains(value.service)
    }
}
