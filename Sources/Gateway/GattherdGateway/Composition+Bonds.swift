import GattherdDaemon

extension Composition {
    /// Does what the command line asks for that has to do with bonds.
    func answerBonds(_ call: ControlCall) async -> ControlReply {
        do throws(BondError) {
            guard case .forgetBond(let who) = call else { return .bonds(try await gateway.herd.bonds()) }
            try await gateway.herd.forgetBond(with: who)
            return .done("the bond with \(who) is ended; a device may pair again when it is seen")
        } catch {
            return .refused(error.description)
        }
    }
}
