import BlueZKit
import GattherdDBus
import Testing

extension BareObject {
    /// Calls a method and expects it to end so, in the words of ``BareObject/outcome(_:_:timeout:)``.
    func expect(
        _ member: String,
        _ arguments: DBusValue...,
        endsIn expected: String,
        timeout: Duration = .seconds(90),
        _ comment: Comment? = nil,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async {
        let outcome = await client.outcome(path, interface, member, arguments, timeout: timeout)
        #expect(outcome == expected, comment, sourceLocation: sourceLocation)
    }
}
