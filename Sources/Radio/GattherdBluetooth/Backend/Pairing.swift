/// The six digits that one side displays and the other one types.
///
/// The description hides the digits, so that they never reach a log by accident.
public struct Passkey: Hashable, Sendable {
    /// The number, 0 to 999999.
    public let value: UInt32

    /// Parses exactly six digits; returns `nil` for any other text.
    public init?(_ digits: some StringProtocol) {
        guard digits.utf8.count == 6, digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
            let value = UInt32(digits)
        else { return nil }
        self.value = value
    }

    /// Six digits, as a person types them.
    public var digits: String {
        let digits = String(value)
        return String(repeating: "0", count: 6 - digits.count) + digits
    }
}

extension Passkey: CustomStringConvertible, CustomReflectable {
    public var description: String { "***" }
    public var customMirror: Mirror { Mirror(self, children: []) }
}

/// The proof that a pairing requires of the peripheral.
public enum PairingMethod: Hashable, Sendable {
    /// No proof: any device that answers at the address is accepted.
    case justWorks
    /// The peripheral has, or displays, these digits.
    case passkey(Passkey)
    /// Numeric comparison: both sides display a number.
    ///
    /// No person reads ours, so this is no safer than Just Works, but satisfies peripherals that insist on it.
    case compare
}

/// A request of a peripheral that pairs, relayed by the platform.
public enum PairingRequest: String, Hashable, Sendable, CaseIterable {
    /// Permission to pair without any proof.
    case authorization
    /// Confirmation that both sides display the same number.
    case confirmation
    /// The passkey that the peripheral displays.
    case passkey
    /// The PIN code of classic Bluetooth before 2.1.
    case pinCode
    /// The display of a passkey to be typed into the peripheral.
    case display
    /// Permission to use a service of this host.
    case service
}

/// The response to a ``PairingRequest``.
public enum PairingResponse: Hashable, Sendable {
    case accepted
    case passkey(Passkey)
    /// The reason is for people.
    case rejected(String)
}

extension PairingMethod {
    /// The response of a host without display and keyboard.
    ///
    /// A method with a proof never falls back to one without: an attacker in between would need no more.
    public func answer(to question: PairingRequest) -> PairingResponse {
        switch (question, self) {
        case (.service, _): .rejected("this host has no services for peripherals")
        case (.display, _): .rejected("nobody here can read the digits that must be typed into it")
        case (.passkey, .passkey(let passkey)), (.pinCode, .passkey(let passkey)): .passkey(passkey)
        case (.passkey, _), (.pinCode, _): .rejected("it asks for a passkey, and none is configured for it")
        case (.authorization, .passkey), (.confirmation, .passkey): .rejected("it does not ask for its passkey")
        case (.authorization, _), (.confirmation, _): .accepted
        }
    }
}

/// Decides about peripherals that begin to pair, or pair because a request needs encryption.
public protocol PairingDelegate: AnyObject, Sendable {
    /// Responds on the central's thread, for peripherals that it connects or serves; must not block.
    func answer(_ question: PairingRequest, from peripheral: PeripheralID) -> PairingResponse
}

/// The pairing state that BlueZ stores for a peripheral.
public struct Bond: Hashable, Sendable {
    public var peripheral: PeripheralID
    /// The advertised name: untrusted text from the air.
    public var name: String?
    /// True if keys have been exchanged.
    public var isPaired: Bool
    /// True if the keys are stored and outlive the link and bluetoothd.
    public var isBonded: Bool
    /// True if the peripheral may use services of this host without a request.
    public var isTrusted: Bool
    public var isConnected: Bool

    public init(peripheral: PeripheralID) {
        self.peripheral = peripheral
        isPaired = false
        isBonded = false
        isTrusted = false
        isConnected = false
    }
}

/// The pairing operations of a backend; ``CentralBackend/forget(_:)`` ends a bond.
public protocol PairingBackend: Sendable {
    /// Responds to pairing requests through a delegate from now on.
    ///
    /// The delegate is kept until the central is closed.
    func answerPairing(with delegate: any PairingDelegate) async

    /// Pairs with a peripheral now; connects if necessary. Being paired already is success.
    ///
    /// - Throws: `authentication` if either side refuses, the passkey is wrong, or the peripheral did not use the given
    ///   passkey.
    func pair(_ peripheral: PeripheralID, by method: PairingMethod, timeout: Duration) async throws(BluetoothError)

    /// All known peripherals, bonded or not, by address.
    func bonds() async throws(BluetoothError) -> [Bond]
}

/// The defaults of a backend that cannot pair.
extension PairingBackend {
    public func answerPairing(with delegate: any PairingDelegate) async {}

    public func pair(
        _ peripheral: PeripheralID,
        by method: PairingMethod,
        timeout: Duration
    ) async throws(BluetoothError) {
        throw BluetoothError(.notSupported, "this central cannot pair")
    }

    public func bonds() async throws(BluetoothError) -> [Bond] { [] }
}
