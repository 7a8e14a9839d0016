/// The six digits that one side shows and the other one types.
///
/// Its description hides it, so that it never comes into a log by accident.
public struct Passkey: Hashable, Sendable {
    /// 0 to 999999.
    public let value: UInt32

    /// `nil` unless it is exactly six digits.
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

/// How a pairing proves that the peripheral is the one that is meant.
public enum PairingMethod: Hashable, Sendable {
    /// It does not: whoever answers at that address is taken.
    case justWorks
    /// The peripheral has, or shows, these digits.
    case passkey(Passkey)
    /// Both sides show a number; nobody looks at ours, so this proves no more than Just Works, but satisfies
    /// peripherals that insist on it.
    case compare
}

/// What a peripheral that pairs wants to know of us.
public enum PairingRequest: String, Hashable, Sendable, CaseIterable {
    /// May it pair without any proof?
    case authorization
    /// Does it show the same number as we do?
    case confirmation
    /// What does it show?
    case passkey
    /// What is typed into it? Asked by classic Bluetooth before 2.1 only.
    case pinCode
    /// Will somebody type into it what we show?
    case display
    /// May it use a service of this host?
    case service
}

/// What we say.
public enum PairingResponse: Hashable, Sendable {
    case accepted
    case passkey(Passkey)
    /// The reason is for people.
    case rejected(String)
}

extension PairingMethod {
    /// The answer of a host on which nobody looks at a screen.
    ///
    /// A method that proves something never falls back to one that does not: that would be all that somebody between
    /// us and the peripheral needs.
    public func answer(to question: PairingRequest) -> PairingResponse {
        switch (question, self) {
        case (.service, _): .rejected("no service of this host is for peripherals")
        case (.display, _): .rejected("nobody would read here what has to be typed into it")
        case (.passkey, .passkey(let passkey)), (.pinCode, .passkey(let passkey)): .passkey(passkey)
        case (.passkey, _), (.pinCode, _): .rejected("it asks for a passkey, and has none here")
        case (.authorization, .passkey), (.confirmation, .passkey): .rejected("it does not ask for its passkey")
        case (.authorization, _), (.confirmation, _): .accepted
        }
    }
}

/// Decides what peripherals are told that begin to pair, or are made to by what they are asked.
public protocol PairingDelegate: AnyObject, Sendable {
    /// Called on the central's thread, for peripherals that it connects or that it serves: must not block.
    func answer(_ question: PairingRequest, from peripheral: PeripheralID) -> PairingResponse
}

/// What BlueZ keeps of a peripheral.
public struct Bond: Hashable, Sendable {
    public var peripheral: PeripheralID
    /// What it calls itself; text from the air, not to be trusted.
    public var name: String?
    /// Keys have been exchanged.
    public var isPaired: Bool
    /// The keys are stored, so that they outlive the link and bluetoothd.
    public var isBonded: Bool
    /// It may use services of this host without being asked.
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

/// The part of a central that has to do with trust; ``CentralBackend/forget(_:)`` ends a bond.
public protocol PairingBackend: Sendable {
    /// Answers peripherals that want to pair, from now on; without a delegate nobody does.
    ///
    /// The delegate is kept until the central is closed.
    func answerPairing(with delegate: any PairingDelegate) async

    /// Pairs with a peripheral now; connects if necessary. Being paired already is success.
    ///
    /// - Throws: `authentication` when either side says no, a passkey is wrong, or the peripheral did without one
    ///   although one is given.
    func pair(_ peripheral: PeripheralID, by method: PairingMethod, timeout: Duration) async throws(BluetoothError)

    /// All peripherals that are known, by address; what is not bonded is told too.
    func bonds() async throws(BluetoothError) -> [Bond]
}

/// A backend that cannot pair.
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
