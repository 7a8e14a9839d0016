import GattherdBluetooth
import GattherdModel

extension ProfileAssignment {
    /// A stream, with the characteristic that the device has for it.
    struct Stream: Sendable {
        let profile: any Profile
        /// The index in the profile's characteristics.
        let index: Int
        let remote: RemoteCharacteristic
        /// The profile's name for the stream, with a number if the device has several of the kind.
        let name: String
        /// True for the stream that tasks and echoes of controls refer to.
        let isFirst: Bool

        var descriptor: CharacteristicDescriptor { profile.characteristics[index] }
        /// The name of the stream's decoder.
        ///
        /// Streams with one decoder share its state; further sensors of a kind have decoders of their own.
        var decoder: String { isFirst ? profile.name : "\(profile.name)/\(name)" }

        /// The polling interval; `nil` if the stream notifies or is read once.
        var pollPeriod: Duration? {
            if case .poll(let period) = descriptor.subscription { return period }
            return remote.properties.isNotifying ? nil : descriptor.pollInstead
        }

        /// True for the stream of the download's records.
        func isDownloaded(by download: DownloadDescriptor) -> Bool {
            isFirst && descriptor.stream == download.stream && descriptor.record != nil
        }
    }

    /// A control, with the characteristic that the device has for it.
    struct Control: Sendable {
        let profile: any Profile
        /// The index in the profile's controls.
        let index: Int
        let remote: RemoteCharacteristic
        /// The expected response to a write; `nil` for none.
        let exchange: ResponseExpectation?
        /// The order of the link's requests; `nil` if no stream is polled.
        private(set) var turn: RequestTurn?

        var descriptor: ControlDescriptor { profile.controls[index] }

        /// The control, whose writes wait for their turn among the link's requests.
        func ordered(by turn: RequestTurn) -> Control {
            var control = self
            control.turn = turn
            return control
        }
    }

    /// A task after connecting, with the characteristic that the device has for it.
    struct Task: Sendable {
        let profile: any Profile
        let task: ConnectionTaskDescriptor
        let remote: RemoteCharacteristic
        /// The expected response to the write; `nil` for none.
        let exchange: ResponseExpectation?
    }

    /// The requests that a stream's values answer, with the characteristic that the device has for them.
    struct Poll: Sendable {
        /// The stream's index in ``streams``.
        let stream: Int
        /// The stream's name.
        let name: String
        let rule: PollRule
        let control: RemoteCharacteristic
    }

    /// A download of stored records, with the characteristics that the device has for it.
    struct Download: Sendable {
        let profile: any Profile
        let descriptor: DownloadDescriptor
        let control: RemoteCharacteristic
        /// The characteristic whose values end a request; `nil` if there is none.
        let answering: RemoteCharacteristic?
        let clock: RemoteCharacteristic?
    }
}
