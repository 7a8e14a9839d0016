// Replaced with the contract.
